"""Test-time augmentation."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS, MODELS, RUNNERS


@HOOKS.register_module()
class PrepareTTAHook(Hook):
    """Wraps the model with `tta_cfg` before testing."""

    def __init__(self, tta_cfg: dict[str, Any]) -> None:
        self.tta_cfg = tta_cfg

    def before_test(self, runner: Any) -> None:
        runner.model = MODELS.build({**self.tta_cfg, "module": runner.model})


def build_runner_with_tta(cfg: Any) -> Any:
    """Build a runner that tests with `cfg.tta_model` and `cfg.tta_pipeline`."""
    for key in ("tta_model", "tta_pipeline"):
        if key not in cfg:
            raise AssertionError(f"please make sure {key} is defined in your config.")
    cfg["test_dataloader"]["dataset"]["pipeline"] = cfg["tta_pipeline"]
    runner = RUNNERS.build(cfg)
    runner.register_hook(PrepareTTAHook(tta_cfg=cfg["tta_model"]))
    return runner
