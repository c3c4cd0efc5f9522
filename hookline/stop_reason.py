"""The reason why a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StopReason:
    """The reason why a run ended. Prints as its message.

    Args:
        message: The reason in words.
        hook: The hook that requested the stop; empty if the run reached its length or got a signal.
        details: The figures behind the reason, such as the metric and the patience.
    """

    message: str
    hook: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def at_length(cls, max_epochs: int | None, max_iters: int | None) -> StopReason:
        """Return the reason of a run that reached its length, in iterations or epochs."""
        name, limit = "max_iters", max_iters
        if max_iters is None:
            name, limit = "max_epochs", max_epochs
        return cls(f"reached {name}={limit}", details={name: limit})

    def __str__(self) -> str:
        return f"{self.hook}: {self.message}" if self.hook else self.message
