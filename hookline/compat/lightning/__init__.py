"""Lightning's callbacks run here (`wrap`), and our hooks run in Lightning's Trainer (`HooklineCallback`)."""

from __future__ import annotations

from typing import Any

from hookline.compat.lightning.hook import LightningHook
from hookline.compat.lightning.names import package_of

__all__ = ["HooklineCallback", "is_callback", "wrap"]


def wrap(callback: Any) -> LightningHook:
    """A hook that drives an unmodified callback of `lightning.pytorch` or `pytorch_lightning`."""
    if not is_callback(type(callback)):
        raise TypeError(f"a callback of Lightning is an instance of its Callback, got {callback!r}")
    hook = LightningHook.around(callback)
    assert isinstance(hook, LightningHook)
    return hook


def is_callback(cls: type) -> bool:
    return package_of(cls) is not None


def __getattr__(name: str) -> Any:
    if name != "HooklineCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hookline.compat.lightning.callback import HooklineCallback

    return HooklineCallback
