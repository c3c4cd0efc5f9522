"""What the engine expects of loaders.

Every iterable of batches is a loader. These protocols describe the further abilities that some
loaders have. The functions look for methods on the object itself, because wrappers of loaders pass
them on with `__getattr__`, which `isinstance` does not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard


class EpochAware(Protocol):
    """A loader or sampler whose order depends on the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""


class StatefulLoader(Protocol):
    """A loader that keeps its own position, such as torchdata's StatefulDataLoader."""

    def state_dict(self) -> Any:
        """Return the position."""

    def load_state_dict(self, state: Any) -> None:
        """Go to a position."""


class PositionedLoader(Protocol):
    """A loader of Hookline: the run counts its batches and asks for the state at that count.

    Attributes:
        epoch: The current epoch.
        resumable: Whether it can begin in the middle of an epoch.
        not_resumable: Why it cannot; None if it can.
        batches_done: Batches of the epoch before the one at which `iter(loader)` begins.
    """

    epoch: int
    resumable: bool
    not_resumable: str | None

    @property
    def batches_done(self) -> int: ...

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the position after a number of batches of the epoch."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position."""


def is_epoch_aware(target: object) -> TypeGuard[EpochAware]:
    """Return whether a loader or sampler wants to know the epoch."""
    return hasattr(target, "set_epoch")


def is_stateful(loader: object) -> TypeGuard[StatefulLoader]:
    """Return whether a loader keeps its own position."""
    return not is_positioned(loader) and hasattr(loader, "state_dict")


def is_positioned(loader: object) -> TypeGuard[PositionedLoader]:
    """Return whether a loader is one of Hookline's."""
    return hasattr(loader, "batches_done")
