"""Run callbacks and algorithms of Composer as hooks (`wrap`)."""

from __future__ import annotations

from hookline.compat.composer.hook import ComposerHook

__all__ = ["is_callback", "wrap"]

is_callback = ComposerHook.is_callback
wrap = ComposerHook.wrap
