"""The training loop: what lies between two iterations."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

END = object()


def training_batches(runner: BaseRunner) -> Iterator[Any]:
    """The batches of a run, to its end; epochs, counters and seams are seen to between them.

    It is a generator so that the caller's own `for` body is the iteration: nothing of ours stands on the stack between
    `Runner.train` and the step.
    """
    seam, costs = runner.seam, runner.costs
    if seam.pending:
        seam.settle_before_training(runner)
    costs.begin_training(runner)
    while not runner.is_finished():
        batches, ahead, went_back = _begin_epoch(runner), END, False
        while True:
            if runner.iter >= costs.due:
                costs.turn(runner)
            asked = perf_counter()
            if (batch := next(batches, END) if ahead is END else ahead) is END:
                costs.drop()
                break
            runner.data_time = perf_counter() - asked
            ahead = END
            runner.batch_idx = runner.inner_iter
            yield batch
            runner.iter += 1
            runner.inner_iter += 1
            if seam.pending and (went_back := seam.go_back()):
                break
            if runner.iter == runner.iter_limit:
                break
            if seam.pending:
                if runner.epoch_length is None:
                    ahead = next(batches, END)  # only so can a loader without a length say that this was the last
                    at_end = ahead is END
                else:
                    at_end = runner.inner_iter == runner.epoch_length
                if at_end:
                    break  # the iteration's seam and the epoch's are one
                seam.settle(runner)
                if runner.stop_reason is not None:
                    return
        if not went_back:
            _end_epoch(runner)
    runner.finish_resume()  # for a run that was finished already
    if seam.pending:
        seam.settle(runner)


def _begin_epoch(runner: BaseRunner) -> Iterator[Any]:
    """Everything before the first batch of an epoch, or of what is left of it; then its batches."""
    resumed_inside = runner.inner_iter > 0
    if not resumed_inside:
        runner.finish_resume()
    for call in runner.sites.before_epoch:
        call(runner)
    for call in runner.sites.before_train_epoch:
        call(runner)
    if resumed_inside:
        runner.finish_resume()
    batches = iter(runner.begin_epoch())
    return _pass_over(runner, batches) if runner.passed_over else batches


def _pass_over(runner: BaseRunner, batches: Iterator[Any]) -> Iterator[Any]:
    """The batches without those that are not to be trained on; these count as read, but not as iterations."""
    for batch in batches:
        if (runner.epoch, runner.inner_iter) in runner.passed_over:
            runner.inner_iter += 1
        else:
            yield batch


def _end_epoch(runner: BaseRunner) -> None:
    """Everything from the last batch of an epoch to the seam after it."""
    if runner.inner_iter == 0:
        raise ValueError(f"train_loader gave no batches in epoch {runner.epoch + 1}: {type(runner.train_loader).__name__} is empty")
    for call in runner.sites.after_train_epoch:
        call(runner)
    runner.seam.epoch_ends()
    runner.seam.validate(runner)
    for call in runner.sites.after_epoch:
        call(runner)
    runner.seam.validate(runner)
    if runner.iter != runner.iter_limit or runner.inner_iter == runner.epoch_length:
        runner.epoch += 1  # an epoch cut short by max_iters is not over: a longer run goes on in its middle
        runner.inner_iter = 0
    if runner.seam.pending:
        runner.seam.settle(runner)
