"""Evaluation: one pass over the validation or test data, or over several named sets of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import torch

from hookline.batches import named_loaders, open_batches
from hookline.dist import World
from hookline.dist.gather import is_sharded
from hookline.errors import HooklineError
from hookline.metrics.base import Metric
from hookline.metrics.evaluators import DatasetEvaluator, TestFunction, explain_failure, full_name
from hookline.metrics.mean_loss import as_numbers
from hookline.metrics.measurement import Measurement
from hookline.metrics.results import Metrics
from hookline.step import build_step

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Mode = Literal["val", "test"]


@dataclass
class Evaluation:
    """The evaluation of a runner, with options that hooks may change."""

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    test_fn: TestFunction | None = None  # evaluates a model on a loader instead of `_measure`
    efficient_test: bool = False  # keep no predictions for a dataset that has `evaluate`
    by_epoch: bool = True  # whether validations are scheduled by epoch
    max_val_batches: int | None = None  # of each validation loader; None reads all
    sync_buffers: bool = True  # use rank 0's buffers, such as batch norm statistics, on all ranks
    set_name: str = ""  # the name of the current data set, if there are several
    _at_end: ExitStack = field(default_factory=ExitStack, repr=False)

    def on_end(self, function: Callable[[], object]) -> None:
        """Call a function when the current evaluation ends, even if it fails."""
        self._at_end.callback(function)

    def begin(self, runner: BaseRunner) -> ExitStack:
        """Return a context that restores module modes, batch and outputs at its end."""
        self._at_end = ExitStack()
        self._at_end.enter_context(runner.events.evaluation_scope())
        for name in ("batch", "outputs", "batch_idx"):
            self._at_end.callback(setattr, runner, name, getattr(runner, name))
        for module in runner.model.modules():
            self._at_end.callback(setattr, module, "training", module.training)
        return self._at_end

    def run(self, runner: BaseRunner, mode: Mode) -> Metrics:
        """Evaluate on the validation or test data; return the metrics."""
        with self.begin(runner):
            runner.call_hook(f"before_{mode}")
            runner.model.eval()
            with torch.no_grad():
                runner.call_hook(f"before_{mode}_epoch")
                runner.metrics = _measure_all(runner, mode)
                runner.call_hook(f"after_{mode}_epoch")
        if mode == "val":
            runner.best.update(runner.metrics, runner.epoch, runner.iter)
            runner.best.warn_about_missing(runner.metrics)
        runner.call_hook(f"after_{mode}")
        return runner.metrics

    def expected_metrics(self, runner: BaseRunner) -> list[str] | None:
        """Return the names of the metrics of a validation; None if they are not known before it."""
        loaders = named_loaders(runner.val_loader)
        if not loaders or self.test_fn is not None or hasattr(runner.model, "val_step"):
            return None
        by_dataset = [DatasetEvaluator(each, runner.logger) for each in loaders.values()]
        has_groups = any(isinstance(each, Mapping) for each in self.metrics.values())
        if has_groups or (any(by_dataset) and not self.efficient_test):
            return None
        keys = (*self.metrics, "val_loss")
        return [full_name(name, key, "val") for name in loaders for key in keys]


def _measure_all(runner: BaseRunner, mode: Mode) -> Metrics:
    loaders = named_loaders(runner.val_loader if mode == "val" else runner.test_loader)
    if not loaders:
        raise HooklineError(f"there is no {mode}_loader to evaluate on")
    if runner.evaluation.sync_buffers:
        runner.world.broadcast_buffers(runner.model.buffers())
    results: dict[str, float] = {}
    for name, loader in loaders.items():
        runner.evaluation.set_name = name
        for key, value in as_numbers(_measure(runner, mode, loader)).items():
            results[full_name(name, key, mode)] = value
    return Metrics(results)


def _measure(runner: BaseRunner, mode: Mode, loader: Iterable[Any]) -> dict[str, Any]:
    """Run the model over one loader; return all metrics and the mean loss."""
    options = runner.evaluation
    dataset = DatasetEvaluator(loader, runner.logger)
    if options.test_fn is not None:
        return dataset.apply(options.test_fn, runner.model, runner.world)
    kept = dataset if dataset and not options.efficient_test else None
    measurement = Measurement(options.metrics, kept, partial(_explain, runner, mode))
    step = build_step(runner, f"{mode}_step")
    limit = options.max_val_batches if mode == "val" else None
    for index, batch in enumerate(islice(open_batches(loader, runner.device), limit)):
        runner.batch_idx = index
        runner.batch = batch
        for call in runner.sites.calls(f"before_{mode}_iter"):
            call(runner)
        runner.outputs = step(runner.batch)
        measurement.update(runner.outputs, runner.batch)
        for call in runner.sites.calls(f"after_{mode}_iter"):
            call(runner)
    return measurement.compute(f"{mode}_loss", runner.world if is_sharded(loader) else World())


def _explain(runner: BaseRunner, mode: Mode, error: Exception, metric: str) -> Exception:
    located = runner.sites.locate_error(runner.evaluation.metrics[metric], error)
    return explain_failure(located, metric, runner.outputs, runner.model, mode)
