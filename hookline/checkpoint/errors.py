"""The errors of this package."""

from __future__ import annotations

from hookline.errors import HooklineError


class CheckpointError(HooklineError):
    """A checkpoint could not be written, found, verified or loaded; `file` names it."""


class UnsafeCheckpoint(CheckpointError):
    """A file holds more than tensors and plain values. It was not loaded or executed."""
