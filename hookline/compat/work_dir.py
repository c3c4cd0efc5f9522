"""The work directory of runners whose interface has it as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class WorkDir(str):
    """A directory as text, with the methods of a path, which Hookline's hooks use."""

    def __truediv__(self, other: str) -> Path:
        return Path(self) / other

    def __getattr__(self, name: str) -> Any:
        return getattr(Path(self), name)
