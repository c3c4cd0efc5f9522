"""Callbacks of Keras run here (`wrap`); Keras is used on torch, with no model of its own."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")  # before its import: by default it looks for TensorFlow

import keras

from hookline.compat.keras.hook import KerasHook

__all__ = ["is_callback", "wrap"]


def wrap(callback: Any) -> KerasHook:
    """A hook that drives an unmodified callback of Keras 3."""
    if not is_callback(type(callback)):
        raise TypeError(f"a callback of Keras is an instance of keras.callbacks.Callback, got {callback!r}")
    hook = KerasHook.around(callback)
    assert isinstance(hook, KerasHook)
    return hook


def is_callback(cls: type) -> bool:
    return issubclass(cls, keras.callbacks.Callback)
