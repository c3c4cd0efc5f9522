"""Build runners from configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.compat.mmcv.utils.registry import Registry, build_from_cfg

RUNNERS = Registry("runner")
RUNNER_BUILDERS = Registry("runner builder")


def build_runner(cfg: Mapping[str, Any], default_args: Mapping[str, Any] | None = None) -> Any:
    """Build a runner from `{'type': 'EpochBasedRunner', 'max_epochs': …}`.

    `constructor` in the config names a class of RUNNER_BUILDERS that builds it.
    """
    config = dict(cfg)
    constructor = {
        "type": config.pop("constructor", "DefaultRunnerConstructor"),
        "runner_cfg": config,
        "default_args": default_args,
    }
    return build_from_cfg(constructor, RUNNER_BUILDERS)()


@RUNNER_BUILDERS.register_module()
class DefaultRunnerConstructor:
    """The constructor of a runner from RUNNERS."""

    def __init__(
        self, runner_cfg: Mapping[str, Any], default_args: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(runner_cfg, Mapping):
            raise TypeError(f"runner_cfg should be a dict, got {type(runner_cfg)}")
        self.runner_cfg = runner_cfg
        self.default_args = default_args

    def __call__(self) -> Any:
        return build_from_cfg(self.runner_cfg, RUNNERS, default_args=self.default_args)
