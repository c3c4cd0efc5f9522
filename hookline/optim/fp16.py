"""MMCV's `auto_fp16` and `force_fp32`: `torch.autocast` for single methods of a model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])


def auto_fp16(
    apply_to: Iterable[str] | None = None,
    out_fp32: bool = False,
    dtype: torch.dtype | None = None,
    owners: tuple[type, ...] = (torch.nn.Module,),
) -> Callable[[F], F]:
    """Run a method in half precision while the module's `fp16_enabled` is true; a decorator.

    Args:
        apply_to: The arguments to cast as well; all if None.
        out_fp32: Whether the result is cast back to float32.
        dtype: The type of half precision; None for the autocast type of the device, which is
            float16 on GPUs and bfloat16 on CPUs.
        owners: The classes whose methods may be decorated.
    """

    def decorate(method: F) -> F:
        return _in_precision(method, apply_to, dtype, owners, half=True, cast_back=out_fp32)

    return decorate


def force_fp32(
    apply_to: Iterable[str] | None = None,
    out_fp16: bool = False,
    dtype: torch.dtype | None = None,
    owners: tuple[type, ...] = (torch.nn.Module,),
) -> Callable[[F], F]:
    """Run a method in float32 inside `auto_fp16`; a decorator.

    Args:
        apply_to: The arguments to cast as well; all if None.
        out_fp16: Whether the result is cast back to half precision.
        dtype: The type of half precision; None for the autocast type of the device.
        owners: The classes whose methods may be decorated.
    """

    def decorate(method: F) -> F:
        return _in_precision(method, apply_to, dtype, owners, half=False, cast_back=out_fp16)

    return decorate


def enable_fp16(model: torch.nn.Module) -> int:
    """Set `fp16_enabled` on all modules with decorated methods; return their number."""
    found = [module for module in model.modules() if _is_decorated(type(module))]
    for module in found:
        module.fp16_enabled = True  # type: ignore[assignment]
    return len(found)


def cast(value: Any, source: torch.dtype, target: torch.dtype) -> Any:
    """Return a value with all tensors of one dtype cast to another, also inside containers."""
    if isinstance(value, torch.Tensor):
        return value.to(target) if value.dtype == source else value
    if isinstance(value, Mapping):
        return type(value)({key: cast(item, source, target) for key, item in value.items()})  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cast(item, source, target) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(cast(item, source, target) for item in value)
    return value


def _in_precision(
    method: F,
    apply_to: Iterable[str] | None,
    dtype: torch.dtype | None,
    owners: tuple[type, ...],
    half: bool,
    cast_back: bool,
) -> F:
    signature = inspect.signature(method)
    chosen = set(signature.parameters) if apply_to is None else set(apply_to)
    unknown = sorted(chosen - set(signature.parameters))
    if unknown:
        raise ValueError(f"apply_to: {method.__qualname__} does not take {', '.join(unknown)}")

    @functools.wraps(method)
    def wrapped(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, owners):
            names = " or ".join(owner.__name__ for owner in owners)
            raise TypeError(f"{method.__qualname__}: only methods of {names} can be decorated")
        if not getattr(self, "fp16_enabled", False):
            return method(self, *args, **kwargs)
        device = _device_type(self, args, kwargs)
        half_dtype = dtype or torch.get_autocast_dtype(device)
        source = torch.float32 if half else half_dtype
        target = half_dtype if half else torch.float32
        bound = signature.bind(self, *args, **kwargs)
        for name, value in list(bound.arguments.items())[1:]:
            if name in chosen:
                bound.arguments[name] = cast(value, source, target)
        with torch.autocast(device, dtype=half_dtype, enabled=half):
            result = method(*bound.args, **bound.kwargs)
        return cast(result, target, source) if cast_back else result

    wrapped.runs_in_half_precision = True  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


def _device_type(module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> str:
    """Return the device type of the first tensor argument, or else of the first parameter."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            return value.device.type
    for parameter in module.parameters():
        return parameter.device.type
    return "cpu"


def _is_decorated(cls: type) -> bool:
    for base in cls.__mro__:
        for member in vars(base).values():
            if getattr(member, "runs_in_half_precision", False):
                return True
    return False
