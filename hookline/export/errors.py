"""The error of an export."""

from __future__ import annotations

from typing import Any

from hookline.errors import HooklineError


class ExportError(HooklineError):
    """A model could not be exported, or the file computes something else than the model.

    Attributes:
        layer: The first layer whose output differs; None if it is not known.
    """

    def __init__(self, message: str, layer: str | None = None, **about: Any) -> None:
        super().__init__(message, **about)
        self.layer = layer
