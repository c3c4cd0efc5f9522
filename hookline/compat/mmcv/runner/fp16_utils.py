"""Half precision by decorators, which are those of Hookline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from hookline.compat.mmcv.runner.original import or_original
from hookline.optim import fp16
from hookline.optim.fp16 import enable_fp16

__all__ = ["auto_fp16", "cast_tensor_type", "force_fp32", "wrap_fp16_model"]


def auto_fp16(
    apply_to: Iterable[str] | None = None,
    out_fp32: bool = False,
    supported_types: tuple[type, ...] = (torch.nn.Module,),
) -> Callable[..., Any]:
    """Run a method in float16 while `fp16_enabled` is true; see `hookline.optim.fp16`."""
    return fp16.auto_fp16(apply_to, out_fp32, torch.float16, supported_types)


def force_fp32(
    apply_to: Iterable[str] | None = None,
    out_fp16: bool = False,
    supported_types: tuple[type, ...] = (torch.nn.Module,),
) -> Callable[..., Any]:
    """Run a method in float32 inside `auto_fp16`; see `hookline.optim.fp16`."""
    return fp16.force_fp32(apply_to, out_fp16, torch.float16, supported_types)


def cast_tensor_type(inputs: Any, src_type: torch.dtype, dst_type: torch.dtype) -> Any:
    """Cast tensors of one type to another, also inside lists and dicts."""
    return fp16.cast(inputs, src_type, dst_type)


def wrap_fp16_model(model: torch.nn.Module) -> None:
    """Enable the methods decorated with `auto_fp16` and `force_fp32`.

    The weights stay in float32, as `torch.autocast` needs them.
    """
    enable_fp16(model)
    for module in model.modules():
        if hasattr(module, "fp16_enabled"):
            module.fp16_enabled = True  # type: ignore[assignment]


__getattr__ = or_original(
    __name__, ("LossScaler", "allreduce_grads", "patch_forward_method", "patch_norm_fp32"), __all__
)
