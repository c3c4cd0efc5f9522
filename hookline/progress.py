"""The current iteration and epoch of a run, counted from 1."""

from __future__ import annotations

from typing import Any, Protocol

from hookline.counters import Counters


class Progress(Counters, Protocol):
    """The counters of a runner, and its loop."""

    loop: Any


def current_iter(runner: Progress) -> int:
    """Return the number of the current iteration; between two, of the one that is over.

    What happens before an epoch belongs to its first iteration, which a resumed run repeats.
    """
    loop = runner.loop
    # In someone else's loop, all that follows an iteration happens while a batch is awaited.
    is_between = loop.phase == "" or (loop.phase == "data" and not loop.owns_data)
    return runner.iter if is_between else runner.iter + 1


def current_epoch(runner: Progress) -> int:
    """Return the number of the current epoch; between two, of the one that is over."""
    has_begun = runner.inner_iter > 0 or current_iter(runner) > runner.iter
    return runner.epoch + 1 if has_begun else runner.epoch


def current_position(runner: Progress) -> tuple[int, int]:
    """Return the numbers of the current iteration and epoch."""
    return current_iter(runner), current_epoch(runner)
