"""`auto_fp16` and `force_fp32`: which methods of a model run in half precision. They are `torch.autocast` with names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])


def auto_fp16(apply_to: Iterable[str] | None = None, out_fp32: bool = False) -> Callable[[F], F]:
    """Decorator of a module's method: half precision while the module's `fp16_enabled` is true, else no effect.

    The arguments in `apply_to` (all, if None) are cast as well. Half precision is what `torch.autocast` takes for the
    device: float16 on GPUs, bfloat16 on CPUs. With `out_fp32` the result is cast back to float32.
    """

    def decorate(method: F) -> F:
        return _in_precision(method, apply_to, half=True, cast_back=out_fp32)

    return decorate


def force_fp32(apply_to: Iterable[str] | None = None, out_fp16: bool = False) -> Callable[[F], F]:
    """Decorator of a module's method: float32 even inside `auto_fp16`, while the module's `fp16_enabled` is true."""

    def decorate(method: F) -> F:
        return _in_precision(method, apply_to, half=False, cast_back=out_fp16)

    return decorate


def enable_fp16(model: torch.nn.Module) -> int:
    """Set `fp16_enabled` on all modules that have decorated methods; how many these are."""
    found = [module for module in model.modules() if _is_decorated(type(module))]
    for module in found:
        module.fp16_enabled = True  # type: ignore[assignment]
    return len(found)


def cast(value: Any, source: torch.dtype, target: torch.dtype) -> Any:
    """The value with all tensors of one type turned into another, whatever containers they are in."""
    if isinstance(value, torch.Tensor):
        return value.to(target) if value.dtype == source else value
    if isinstance(value, Mapping):
        return type(value)({key: cast(item, source, target) for key, item in value.items()})  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cast(item, source, target) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(cast(item, source, target) for item in value)
    return value


def _in_precision(method: F, apply_to: Iterable[str] | None, half: bool, cast_back: bool) -> F:
    signature = inspect.signature(method)
    chosen = None if apply_to is None else set(apply_to)
    if chosen is not None and not chosen <= set(signature.parameters):
        missing = ", ".join(sorted(chosen - set(signature.parameters)))
        raise ValueError(f"apply_to names what {method.__qualname__} does not take: {missing}")

    @functools.wraps(method)
    def wrapped(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, torch.nn.Module):
            raise TypeError(f"{method.__qualname__}: only methods of a torch.nn.Module can be decorated")
        if not getattr(self, "fp16_enabled", False):
            return method(self, *args, **kwargs)
        device = _device_type(self, args, kwargs)
        low = torch.get_autocast_dtype(device)
        source, target = (torch.float32, low) if half else (low, torch.float32)
        bound = signature.bind(self, *args, **kwargs)
        for name, value in list(bound.arguments.items())[1:]:
            if chosen is None or name in chosen:
                bound.arguments[name] = cast(value, source, target)
        with torch.autocast(device, dtype=low, enabled=half):
            result = method(*bound.args, **bound.kwargs)
        return cast(result, target, source) if cast_back else result

    wrapped.runs_in_half_precision = True  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


def _device_type(module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> str:
    given = next((value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)), None)
    tensor = given if given is not None else next(module.parameters(), None)
    return "cpu" if tensor is None else tensor.device.type


def _is_decorated(cls: type) -> bool:
    return any(getattr(member, "runs_in_half_precision", False) for base in cls.__mro__ for member in vars(base).values())
