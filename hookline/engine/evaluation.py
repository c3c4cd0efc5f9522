"""Evaluation: one pass over the validation or test data, or over several named sets of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch

from hookline.batches import count_targets, move_each, named_loaders
from hookline.dist import World
from hookline.dist.gather import is_sharded, mean_over_ranks, syncs_itself
from hookline.errors import HooklineError
from hookline.metrics.base import Metric
from hookline.metrics.evaluators import (
    DatasetEvaluator,
    TestFunction,
    explain_failure,
    full_name,
)
from hookline.metrics.mean_loss import MeanLoss, as_numbers
from hookline.metrics.results import Metrics
from hookline.step import make_step

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Mode = Literal["val", "test"]


@dataclass
class Evaluation:
    """How a runner evaluates. Hooks may change it.

    Args:
        metrics: Metrics by name.
        test_fn: Takes the model and a loader, in place of the pass over the batches.
        efficient_test: Do not keep predictions for a dataset that has `evaluate`.
        sync_buffers: Evaluate with rank 0's buffers, such as batch norm statistics, on all ranks.
        set_name: The set that is being evaluated, if there are several.
    """

    metrics: Mapping[str, Metric] = field(default_factory=dict)
    test_fn: TestFunction | None = None
    efficient_test: bool = False
    sync_buffers: bool = True
    set_name: str = ""
    _at_end: ExitStack = field(default_factory=ExitStack, repr=False)

    def on_end(self, function: Callable[[], object]) -> None:
        """Call a function when the current evaluation ends, even if it fails."""
        self._at_end.callback(function)

    def begin(self, runner: BaseRunner) -> ExitStack:
        """Return the context of an evaluation: it restores modes, batch and outputs."""
        self._at_end = ExitStack()
        self._at_end.enter_context(runner.events.evaluation_scope())
        batch = runner.batch
        outputs = runner.outputs
        batch_idx = runner.batch_idx
        modes = [(module, module.training) for module in runner.model.modules()]

        def restore() -> None:
            for module, training in modes:
                module.training = training
            runner.batch = batch
            runner.outputs = outputs
            runner.batch_idx = batch_idx

        self._at_end.callback(restore)
        return self._at_end

    def run(self, runner: BaseRunner, mode: Mode) -> None:
        """Evaluate, because a hook requested it."""
        evaluate(runner, mode)

    def expected_metrics(self, runner: BaseRunner) -> list[str] | None:
        """Return the names that a validation will give; None if only the validation can show."""
        loaders = named_loaders(runner.val_loader)
        if not loaders or self.test_fn is not None:
            return None
        by_dataset = [bool(DatasetEvaluator(each, runner.logger)) for each in loaders.values()]
        if any(by_dataset) and not self.efficient_test:
            return None
        if any(isinstance(each, Mapping) for each in self.metrics.values()):
            return None
        keys = (*self.metrics, "val_loss")
        return [full_name(name, key, "val") for name in loaders for key in keys]


def evaluate(runner: BaseRunner, mode: Mode) -> Metrics:
    """Evaluate on the validation or test data; return the metrics."""
    with runner.evaluation.begin(runner):
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
    """Return everything that is measured on one loader."""
    options = runner.evaluation
    dataset = DatasetEvaluator(loader, runner.logger)
    if options.test_fn is not None:
        return dataset.apply(options.test_fn, runner.model, runner.world)
    kept = dataset if dataset and not options.efficient_test else None
    mean_loss = MeanLoss()
    samples = _pass_over_batches(runner, mode, loader, mean_loss, kept)
    ranks = runner.world if is_sharded(loader) else World()
    results = {}
    for name, metric in options.metrics.items():
        value = metric.compute()
        results[name] = value if syncs_itself(metric) else mean_over_ranks(ranks, value, samples)
    if kept is not None:
        results.update(kept.compute(ranks))
    results.update(mean_loss.compute(f"{mode}_loss", ranks))
    return results


def _pass_over_batches(
    runner: BaseRunner,
    mode: Mode,
    loader: Iterable[Any],
    mean_loss: MeanLoss,
    kept: DatasetEvaluator | None,
) -> int:
    """Run the model over all batches and update the metrics; return the number of samples."""
    samples = 0
    before, after = f"before_{mode}_iter", f"after_{mode}_iter"
    step = make_step(runner.model, f"{mode}_step", runner.loss_fn, runner.optimizer)
    for metric in runner.evaluation.metrics.values():
        metric.reset()
    for index, batch in enumerate(move_each(loader, runner.device)):
        runner.batch_idx = index
        runner.batch = batch
        for call in runner.sites.calls(before):
            call(runner)
        runner.outputs = outputs = step(runner.batch)
        mean_loss.update(outputs)
        samples += count_targets(outputs.get("targets"))
        _update_metrics(runner, mode)
        if kept is not None:
            kept.update(outputs["predictions"])
        for call in runner.sites.calls(after):
            call(runner)
    return samples


def _update_metrics(runner: BaseRunner, mode: Mode) -> None:
    outputs = runner.outputs
    for name, metric in runner.evaluation.metrics.items():
        try:
            metric.update(outputs["predictions"], outputs["targets"])
        except Exception as error:
            located = runner.locate_error(metric, error)
            explained = explain_failure(located, name, outputs, runner.model, mode)
            if explained is error:
                raise
            raise explained from error
