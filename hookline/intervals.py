"""Intervals: whether a repeated action is due."""

from __future__ import annotations

from hookline.counters import Counters


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


class IntervalMethods:
    """Predicates for `after_*` sites, where the current iteration or epoch is not counted yet."""

    def every_n_epochs(self, runner: Counters, n: int, start: int = 0) -> bool:
        """Return whether every n-th epoch, counted from `start`, is ending."""
        return is_due(runner.epoch + 1, n, start)

    def every_n_iters(self, runner: Counters, n: int, start: int = 0) -> bool:
        """Return whether every n-th iteration, counted from `start`, is ending."""
        return is_due(runner.iter + 1, n, start)

    every_n_train_iters = every_n_iters

    def every_n_inner_iters(self, runner: Counters, n: int) -> bool:
        """Return whether every n-th iteration of its epoch is ending."""
        return is_due(runner.batch_idx + 1, n)

    def end_of_epoch(self, runner: Counters) -> bool:
        """Return whether the epoch's last iteration is ending, if its length is known."""
        return runner.epoch_length is not None and runner.inner_iter + 1 == runner.epoch_length

    def is_last_epoch(self, runner: Counters) -> bool:
        """Return whether the last epoch is ending."""
        return runner.max_epochs is not None and runner.epoch + 1 >= runner.max_epochs

    is_last_train_epoch = is_last_epoch

    def is_last_iter(self, runner: Counters) -> bool:
        """Return whether the last iteration is ending."""
        return runner.max_iters is not None and runner.iter + 1 >= runner.max_iters

    is_last_train_iter = is_last_iter
