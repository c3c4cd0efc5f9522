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
