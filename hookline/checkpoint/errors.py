"""The one error of this package."""

from __future__ import annotations

from hookline.errors import HooklineError


class CheckpointError(HooklineError):
    """A checkpoint could not be written, found, verified or loaded; one line with the file and the cause."""
