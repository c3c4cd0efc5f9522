"""The abilities of loaders that the engine makes use of.

Every iterable of batches is a loader. These protocols describe the further abilities that some
loaders have. The functions look for methods on the object itself, because wrappers of loaders pass
them on with `__getattr__`, which `isinstance` does not see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeGuard

from hookline.batches import named_loaders
from hookline.signature import parameters


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
        batches_done: Batches of the epoch before the one at which `iter(loader)` begins.
    """

    epoch: int

    @property
    def batches_done(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

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


def has_state(target: object) -> TypeGuard[StatefulLoader]:
    """Return whether a loader, sampler or dataset keeps its own position."""
    if not hasattr(target, "state_dict") or not hasattr(target, "load_state_dict"):
        return False
    return not parameters(target.state_dict).required()  # else another object calls it


def is_stateful(loader: object) -> TypeGuard[StatefulLoader]:
    """Return whether a loader of another library keeps its position in a state."""
    return not is_positioned(loader) and has_state(loader)


def is_positioned(loader: object) -> TypeGuard[PositionedLoader]:
    """Return whether a loader is one of Hookline's."""
    return hasattr(loader, "batches_done")


def length_of(loader: Any) -> int | None:
    """Return the number of batches of a loader, or None if it has no length."""
    try:
        return len(loader)
    except TypeError:  # a loader over an iterable dataset has __len__, and it raises
        return None


def count_batches(loaders: Any, limit: int | None = None) -> int | None:
    """Return the batches of all loaders, at most `limit` of each; None if one has no length."""
    total = 0
    for loader in named_loaders(loaders).values():
        length = length_of(loader)
        if length is None:
            return None
        total += length if limit is None else min(length, limit)
    return total


def set_loader_epoch(loader: Any, epoch: int) -> None:
    """Pass the epoch to a loader, its sampler and its dataset: their order may depend on it."""
    targets = [loader]
    for name in ("sampler", "batch_sampler", "dataset"):
        targets.append(getattr(loader, name, None))
    for target in targets:
        if is_epoch_aware(target):
            target.set_epoch(epoch)


def set_default_seed(loaders: Any, seed: int | None) -> None:
    """Pass the seed of a run to its loaders, one or several by name, that were made without one."""
    for loader in loaders.values() if isinstance(loaders, Mapping) else [loaders]:
        if hasattr(loader, "set_default_seed"):
            loader.set_default_seed(seed or 0)
