"""Callbacks of Hugging Face's Trainer run here (`wrap`), and our hooks run in that Trainer (`HooklineCallback`)."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from hookline.compat.transformers.hook import TransformersHook

__all__ = ["HooklineCallback", "is_callback", "wrap"]


def wrap(callback: Any, **arguments: Any) -> TransformersHook:
    """A hook that drives an unmodified TrainerCallback. `arguments` are TrainingArguments that differ from what the run tells.

    `wrap(EarlyStoppingCallback(3), metric_for_best_model="accuracy")`.
    """
    if not is_callback(type(callback)):
        raise TypeError(f"a callback of transformers is an instance of TrainerCallback, got {callback!r}")
    hook = TransformersHook.around(callback)
    assert isinstance(hook, TransformersHook)
    hook.given = arguments
    return hook


def is_callback(cls: type) -> bool:
    return issubclass(cls, TrainerCallback)


def __getattr__(name: str) -> Any:
    if name != "HooklineCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hookline.compat.transformers.callback import HooklineCallback

    return HooklineCallback
