"""Run Lightning's callbacks as hooks (`wrap`), and hooks in its Trainer (`HooklineCallback`)."""

from __future__ import annotations

from typing import Any

from hookline.compat.lightning.hook import LightningHook

__all__ = ["HooklineCallback", "is_callback", "wrap"]

is_callback = LightningHook.is_callback
wrap = LightningHook.wrap


def __getattr__(name: str) -> Any:
    if name != "HooklineCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hookline.compat.lightning.callback import HooklineCallback

    return HooklineCallback
