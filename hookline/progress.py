"""The current iteration and epoch of a run, counted from 1."""

from __future__ import annotations

from typing import Any, Protocol

from hookline.counters import Counters


class RunProgress(Counters, Protocol):
    """The counters of a runner, and its loop."""

    loop: Any


def current_iter(runner: RunProgress) -> int:
    """Return the number of the current iteration; between two, of the one that is over.

    The sites before an epoch belong to its first iteration: a resumed run repeats them.
    """
    loop = runner.loop
    # In an external loop, validations and saves run in the phase "data", after the iteration.
    is_between = loop.phase == "" or (loop.phase == "data" and not loop.owns_data)
    return runner.iter if is_between else runner.iter + 1


def current_epoch(runner: RunProgress) -> int:
    """Return the number of the current epoch; between two, of the one that is over."""
    has_begun = runner.inner_iter > 0 or current_iter(runner) > runner.iter
    return runner.epoch + 1 if has_begun else runner.epoch


def current_position(runner: RunProgress) -> tuple[int, int]:
    """Return the numbers of the current iteration and epoch."""
    return current_iter(runner), current_epoch(runner)
