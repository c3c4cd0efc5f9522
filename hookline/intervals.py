"""Predicates about intervals: whether a repeated action is due."""

from __future__ import annotations

from hookline.progress import RunProgress, current_epoch, current_iter


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
    if interval < 1 or completed < max(start, 1):
        return False
    return (completed - start) % interval == 0


class IntervalMethods:
    """Predicates about the current iteration or epoch, or the last one between two of them.

    `runner.iter` counts finished iterations. These methods include the one that is running.
    """

    def every_n_epochs(self, runner: RunProgress, n: int, start: int = 0) -> bool:
        """Return whether this is every n-th epoch, counted from `start`."""
        return is_due(current_epoch(runner), n, start)

    def every_n_iters(self, runner: RunProgress, n: int, start: int = 0) -> bool:
        """Return whether this is every n-th iteration, counted from `start`."""
        return is_due(current_iter(runner), n, start)

    every_n_train_iters = every_n_iters

    def every_n_inner_iters(self, runner: RunProgress, n: int) -> bool:
        """Return whether this is every n-th iteration of its epoch."""
        return is_due(runner.batch_idx + 1, n)

    def end_of_epoch(self, runner: RunProgress) -> bool:
        """Return whether this is the last iteration of its epoch; False if that is unknown."""
        done = runner.inner_iter + current_iter(runner) - runner.iter
        return done == runner.epoch_length

    def is_last_epoch(self, runner: RunProgress) -> bool:
        """Return whether this is the last epoch."""
        return runner.max_epochs is not None and current_epoch(runner) >= runner.max_epochs

    is_last_train_epoch = is_last_epoch

    def is_last_iter(self, runner: RunProgress) -> bool:
        """Return whether this is the last iteration."""
        return runner.max_iters is not None and current_iter(runner) >= runner.max_iters

    is_last_train_iter = is_last_iter
