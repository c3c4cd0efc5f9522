"""Intervals: whether a repeated action is due."""

from __future__ import annotations


def is_due(completed: int, interval: int, start: int = 0, end: int | None = None) -> bool:
    """Return whether an action is due after a number of epochs or iterations.

    Args:
        completed: The number of completed epochs or iterations, the current one included.
        interval: The distance between two actions. Below 1, only the end counts.
        start: The first number at which the action may be due; the interval counts from it.
        end: The length of the run if the action is also due at its end, otherwise None.
    """
    if end is not None and completed >= end:
        return True
    return interval > 0 and completed >= start and (completed - start) % interval == 0
