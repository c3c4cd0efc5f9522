"""The modules of an installed MMCV 1.x that Hookline replaces; all others are the real ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from hookline.compat import overlay

MODULES = (
    "engine.test",
    "parallel.distributed",
    "runner.base_runner",
    "runner.checkpoint",
    "runner.dist_utils",
    "runner.epoch_based_runner",
    "runner.fp16_utils",
    "runner.hooks.checkpoint",
    "runner.hooks.ema",
    "runner.hooks.evaluation",
    "runner.hooks.hook",
    "runner.hooks.iter_timer",
    "runner.hooks.logger.base",
    "runner.hooks.logger.text",
    "runner.hooks.lr_updater",
    "runner.hooks.momentum_updater",
    "runner.hooks.optimizer",
    "runner.hooks.profiler",
    "runner.hooks.sync_buffer",
    "runner.iter_based_runner",
    "runner.log_buffer",
    "runner.priority",
)


def begin_overlay() -> bool:
    """Replace the modules of an installed MMCV 1.x; return False if none is installed.

    MMCV 2.x has no `mmcv.runner`. It stands on MMEngine and needs nothing of this.
    """
    if overlay.find("mmcv") is not None:
        return True
    spec = importlib.util.find_spec("mmcv")
    if spec is None or spec.origin is None:
        return False
    if not (Path(spec.origin).parent / "runner").is_dir():
        return False
    return overlay.begin("mmcv", {module: module for module in MODULES})
