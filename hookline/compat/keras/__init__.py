"""Run callbacks of Keras as hooks (`wrap`), with Keras on torch."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # read on import; the default is TensorFlow

from hookline.compat.keras.hook import KerasHook

__all__ = ["is_callback", "wrap"]

is_callback = KerasHook.is_callback
wrap = KerasHook.wrap
