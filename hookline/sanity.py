"""The sanity validation: a few batches before training, so that errors surface at once."""

from __future__ import annotations

import contextlib
import copy
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from hookline.batches import move_each, named_loaders
from hookline.data.peek import can_peek, peeking
from hookline.data.protocols import length_of
from hookline.engine.runner import BaseRunner
from hookline.errors import ConfigError, Suggestion, add_note
from hookline.metrics.base import Metric
from hookline.metrics.evaluators import explain_failure
from hookline.metrics.measurement import Measurement
from hookline.rng import restore_rng, rng_state
from hookline.step import build_step


def check_val_end(runner: BaseRunner) -> None:
    """Raise if a validation might never end.

    That is so for `itertools.cycle`, and for a loader without a length in a run that also trains on
    one, by iterations: such streams seldom end.
    """
    if runner.evaluation.max_val_batches is not None or runner.evaluation.test_fn is not None:
        return
    is_stream = runner.loop.iter_limit is not None and runner.epoch_length is None
    for name, loader in named_loaders(runner.val_loader).items():
        is_endless = isinstance(loader, (itertools.cycle, itertools.count))
        if is_endless or (is_stream and length_of(loader) is None):
            raise ConfigError(
                f"val_loader{f' {name!r}' if name else ''} ({type(loader).__name__}) has no "
                "length, so a validation might never end",
                component="Runner",
                parameter="max_val_batches",
                suggestion=Suggestion(
                    advice="pass max_val_batches=…; a number above its batches reads all of them"
                ),
            )


def check_validation(runner: BaseRunner, count: int) -> None:
    """Validate on the first batches of each validation loader, and leave no trace of it.

    Random numbers, metrics, buffers and modes of the model are restored, and no hook is called.
    Loaders that cannot begin again are left alone. So is a validation that a function or a hook
    defines: a `test_fn`, or a hook with `before_val_iter`, which may replace the batch.

    Args:
        runner: The runner, right before its first epoch.
        count: The number of batches of each loader.
    """
    if not _is_due(runner):
        return
    loaders = [each for each in named_loaders(runner.val_loader).values() if can_peek(each)]
    try:
        with _untouched(runner):
            runner.model.eval()
            for loader in loaders:
                with peeking(loader, count) as batches:
                    _measure(runner, move_each(batches, runner.device))
    except Exception as error:
        add_note(
            error,
            f"hookline: raised in the sanity validation, which tries {count} validation batches "
            "before training; sanity_val_batches=0 turns it off",
        )
        raise


def _is_due(runner: BaseRunner) -> bool:
    is_first_epoch = runner.iter == 0 and not runner.loop.resuming
    has_own_way = runner.evaluation.test_fn is not None or bool(
        runner.sites.hooks["before_val_iter"]
    )
    return is_first_epoch and not has_own_way and not runner.loop.is_finished()


@contextlib.contextmanager
def _untouched(runner: BaseRunner) -> Iterator[None]:
    """Restore everything that an evaluation without hooks may change."""
    random_numbers = rng_state()
    buffers = [(buffer, buffer.clone()) for buffer in runner.model.buffers()]
    try:
        with runner.evaluation.begin(runner), torch.no_grad():
            yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
        restore_rng(random_numbers)


def _measure(runner: BaseRunner, batches: Iterable[Any]) -> None:
    def explain(error: Exception, metric: str) -> Exception:
        located = runner.sites.locate_error(runner.evaluation.metrics[metric], error)
        return explain_failure(located, metric, runner.outputs, runner.model, "val")

    metrics = _copy_metrics(runner.evaluation.metrics)
    measurement = Measurement(metrics, None, explain)
    step = build_step(runner, "val_step")
    for batch in batches:
        runner.batch = batch
        runner.outputs = step(batch)
        measurement.update(runner.outputs)
    _compute(metrics)


def _copy_metrics(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return copies of the metrics, without those that cannot be copied."""
    copies = {}
    for name, metric in metrics.items():
        with contextlib.suppress(Exception):
            copies[name] = copy.deepcopy(metric)
    return copies


def _compute(metrics: Mapping[str, Metric]) -> None:
    """Compute the metrics; ignore those that need other samples, such as a second class."""
    for metric in metrics.values():
        # The samples of two batches may be too few, or all alike.
        with warnings.catch_warnings(), contextlib.suppress(ValueError, ArithmeticError):
            warnings.simplefilter("ignore")
            metric.compute()
