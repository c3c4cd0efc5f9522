"""The loops: what lies between two training iterations, and evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch

from hookline.engine.metrics import MeanLoss, Metrics, as_numbers

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

END = object()


def training_batches(runner: BaseRunner) -> Iterator[Any]:
    """The batches of a run, to its end; epochs, counters and seams are seen to between them.

    It is a generator so that the caller's own `for` body is the iteration: nothing of ours stands on the stack between
    `Runner.train` and the step.
    """
    sites, seam = runner.sites, runner.seam
    while not runner.is_finished():
        resumed_inside = runner.inner_iter > 0
        if not resumed_inside:
            runner.finish_resume()
        for call in sites.before_epoch:
            call(runner)
        for call in sites.before_train_epoch:
            call(runner)
        if resumed_inside:
            runner.finish_resume()
        batches, ahead = iter(runner.begin_epoch()), END
        while (batch := next(batches, END) if ahead is END else ahead) is not END:
            ahead = END
            runner.batch_idx = runner.inner_iter
            yield batch
            runner.iter += 1
            runner.inner_iter += 1
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
        if runner.inner_iter == 0:
            raise ValueError(f"train_loader gave no batches in epoch {runner.epoch + 1}: {type(runner.train_loader).__name__} is empty")
        _end_epoch(runner)
    runner.finish_resume()  # for a run that was finished already
    if seam.pending:
        seam.settle(runner)


def _end_epoch(runner: BaseRunner) -> None:
    """Everything from the last batch of an epoch to the seam after it."""
    for call in runner.sites.after_train_epoch:
        call(runner)
    runner.seam.validate(runner)
    for call in runner.sites.after_epoch:
        call(runner)
    runner.seam.validate(runner)
    if runner.iter != runner.iter_limit or runner.inner_iter == runner.epoch_length:
        runner.epoch += 1  # an epoch cut short by max_iters is not over: a longer run goes on in its middle
        runner.inner_iter = 0
    if runner.seam.pending:
        runner.seam.settle(runner)


def evaluate(runner: BaseRunner, mode: Literal["val", "test"]) -> Metrics:
    """One pass over the validation or test data; training mode, batch and outputs are as before when it is over."""
    before = runner.batch, runner.outputs, runner.batch_idx
    modes = [(module, module.training) for module in runner.model.modules()]
    sites = runner.sites
    try:
        for call in sites.before_val if mode == "val" else sites.before_test:
            call(runner)
        runner.model.eval()
        with torch.no_grad():
            metrics = _evaluation_epoch(runner, mode)
    finally:
        for module, training in modes:
            module.training = training
        runner.batch, runner.outputs, runner.batch_idx = before
    for call in sites.after_val if mode == "val" else sites.after_test:
        call(runner)
    return metrics


def _evaluation_epoch(runner: BaseRunner, mode: Literal["val", "test"]) -> Metrics:
    sites, step = runner.sites, runner.evaluation_step(mode)
    is_val = mode == "val"
    mean_loss = MeanLoss()
    for metric in runner.metric_objects.values():
        metric.reset()
    for call in sites.before_val_epoch if is_val else sites.before_test_epoch:
        call(runner)
    for index, batch in enumerate(runner.evaluation_batches(mode)):
        runner.batch_idx, runner.batch = index, batch
        for call in sites.before_val_iter if is_val else sites.before_test_iter:
            call(runner)
        runner.outputs = outputs = step(runner.batch)
        mean_loss.update(outputs)
        for metric in runner.metric_objects.values():
            metric.update(outputs["predictions"], outputs["targets"])
        for call in sites.after_val_iter if is_val else sites.after_test_iter:
            call(runner)
    results = {name: metric.compute() for name, metric in runner.metric_objects.items()}
    runner.metrics = Metrics(as_numbers({**results, **mean_loss.compute(f"{mode}_loss")}))
    for call in sites.after_val_epoch if is_val else sites.after_test_epoch:
        call(runner)
    return runner.metrics
