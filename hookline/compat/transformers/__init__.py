"""Run callbacks of HF's Trainer as hooks (`wrap`), and hooks in it (`HooklineCallback`)."""

from __future__ import annotations

from typing import Any

from hookline.compat.transformers.hook import TransformersHook

__all__ = ["HooklineCallback", "is_callback", "wrap"]

is_callback = TransformersHook.is_callback


def wrap(callback: Any, **arguments: Any) -> TransformersHook:
    """Return a hook that drives an unmodified TrainerCallback.

    Example: `wrap(EarlyStoppingCallback(3), metric_for_best_model="accuracy")`.

    Args:
        callback: The callback.
        arguments: TrainingArguments that replace the values derived from the run.
    """
    hook = TransformersHook.wrap(callback)
    hook.arguments = arguments
    return hook


def __getattr__(name: str) -> Any:
    if name != "HooklineCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hookline.compat.transformers.callback import HooklineCallback

    return HooklineCallback
