"""Callbacks and algorithms of Composer run here (`wrap`)."""

from __future__ import annotations

from typing import Any

from composer.core import Algorithm, Callback

from hookline.compat.composer.hook import ComposerHook

__all__ = ["is_callback", "wrap"]


def wrap(callback_or_algorithm: Any) -> ComposerHook:
    """A hook that drives an unmodified callback or algorithm of Composer."""
    if not is_callback(type(callback_or_algorithm)):
        raise TypeError(f"of Composer a Callback or an Algorithm can be wrapped, got {callback_or_algorithm!r}")
    hook = ComposerHook.around(callback_or_algorithm)
    assert isinstance(hook, ComposerHook)
    return hook


def is_callback(cls: type) -> bool:
    return issubclass(cls, (Algorithm, Callback))
