"""The sanity validation: a few batches before training, so that errors surface at once."""

from __future__ import annotations

import contextlib
import copy
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

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

Buffers = dict[tuple[nn.Module, str], torch.Tensor]


def check_val_end(runner: BaseRunner) -> None:
    """Raise if a validation might never end; warn if that is possible but unlikely.

    It might never end with `itertools.cycle`, and with a loader without a length in a run that also
    trains on one, by iterations. In other runs, most loaders without a length end.
    """
    if runner.evaluation.max_val_batches is not None or runner.evaluation.test_fn is not None:
        return
    is_stream = runner.loop.iter_limit is not None and runner.epoch_length is None
    for name, loader in named_loaders(runner.val_loader).items():
        label = f"val_loader{f' {name!r}' if name else ''} ({type(loader).__name__})"
        is_endless = isinstance(loader, (itertools.cycle, itertools.count))
        if is_endless or (is_stream and length_of(loader) is None):
            raise ConfigError(
                f"{label} has no length, so a validation might never end",
                component="Runner",
                parameter="max_val_batches",
                suggestion=Suggestion(
                    advice="pass max_val_batches=…; a number above its batches reads all of them"
                ),
            )
        if length_of(loader) is None and runner.is_main:
            runner.logger.warning(
                "%s has no length: if it never ends, no validation does; max_val_batches=… limits "
                "it, or a number above its batches avoids this warning",
                label,
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
    buffers = _find_buffers(runner.model)
    values = {place: buffer.clone() for place, buffer in buffers.items()}
    try:
        with runner.evaluation.begin(runner), torch.no_grad():
            yield
    finally:
        _restore_buffers(runner.model, buffers, values)
        restore_rng(random_numbers)


def _find_buffers(model: nn.Module) -> Buffers:
    """Return all buffers by their modules and names."""
    buffers: Buffers = {}
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            buffers[module, name] = buffer
    return buffers


def _restore_buffers(model: nn.Module, buffers: Buffers, values: Buffers) -> None:
    """Restore the values of buffers, and the tensors where a step has assigned others."""
    for module, name in _find_buffers(model):
        if (module, name) not in buffers:
            setattr(module, name, None)
    with torch.no_grad():
        for (module, name), buffer in buffers.items():
            buffer.copy_(values[module, name])
            setattr(module, name, buffer)


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
        measurement.update(runner.outputs, runner.batch)
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
