"""Retention: which checkpoints to keep and which to delete."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def retain(saved: Iterable[T], limit: int) -> tuple[list[T], list[T]]:
    """Split saved checkpoints into the ones to keep and the surplus ones to delete.

    Args:
        saved: Their names or numbers, oldest first. One that was saved twice counts once, as new.
        limit: The number of checkpoints to keep, the newest ones. Below 1, all are kept.
    """
    newest_first = dict.fromkeys(reversed(list(saved)))
    ordered = list(reversed(newest_first))
    if limit < 1:
        return ordered, []
    return ordered[-limit:], ordered[:-limit]


def superseded(previous: str | None, name: str) -> list[str]:
    """Return the names to delete when a new best checkpoint is saved.

    That is the previous one. A resumed run may save the best checkpoint under the same name again,
    which must not be deleted.
    """
    if previous is None or previous == name:
        return []
    return [previous]
