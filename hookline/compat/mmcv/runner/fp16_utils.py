"""Half precision by decorators, which are those of Hookline."""

from __future__ import annotations

import torch

from hookline.optim.fp16 import auto_fp16, enable_fp16, force_fp32

__all__ = ["auto_fp16", "force_fp32", "wrap_fp16_model"]


def wrap_fp16_model(model: torch.nn.Module) -> None:
    """Enable the methods decorated with `auto_fp16` and `force_fp32`.

    The weights stay in float32, as `torch.autocast` needs them.
    """
    enable_fp16(model)
    for module in model.modules():
        if hasattr(module, "fp16_enabled"):
            module.fp16_enabled = True  # type: ignore[assignment]
