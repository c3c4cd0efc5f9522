"""The default constructor of runners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.compat.mmcv.runner.builder import RUNNER_BUILDERS, RUNNERS
from hookline.compat.mmcv.utils.registry import build_from_cfg


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
