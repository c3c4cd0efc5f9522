"""Request validations: when, on which data, and by which metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.data import DATASETS, make_loader, share_loaders
from hookline.data.protocols import set_default_seed
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least
from hookline.metrics.best import DEFAULT_METRIC, TrackedMetric
from hookline.metrics.direction import DEFAULT_RULE, given_rule


@HOOKS.register()
@dataclass
class EvalHook(BaseHook):
    """Request validation at an interval and keep the best result.

    If the data set has an `evaluate` method, it receives all predictions.

    Args:
        dataloader: A loader, or several by name or in a list. The names, or the positions in the
            list (`0`, `1`), become prefixes of the metrics. In a config, a loader is
            `{dataset: {type: …}, batch_size: …}`. None uses the loader of the runner.
        interval: Number of epochs (or iterations) between two validations.
        by_epoch: Count `interval` and `start` in epochs. Otherwise count iterations.
        start: First epoch (or iteration) to validate. If it is above 0, a run that resumes later is
            validated before it continues.
        save_best: Save the best model, unless CheckpointHook has `save_best: false` and no metric
            is named here. A string is another way to give `metric`.
        metric: Metric of the best model. The default follows the `best_metric` of CheckpointHook.
            `auto`, and a default that is not measured, stand for the first metric.
        rule: `greater` or `less`. Without it, `higher_is_better` of the metric or whole words of
            its name decide.
        efficient_test: Do not keep predictions for the `evaluate` method of the data set.
        test_fn: Function `test_fn(model, loader)` that replaces the pass over the data. It returns
            predictions for the `evaluate` method of the data set, or metrics by name. With several
            ranks, it gets this rank's share of the data. Predictions of all ranks are put in the
            order of the data set. Metrics are averaged, weighted by samples, so they must be means
            over samples. All ranks get the same results.

    Example:
        ```yaml
        hooks:
          - {type: EvalHook, interval: 1, start: 0, metric: accuracy}
        ```
    """

    dataloader: Any = None
    interval: int = 1
    by_epoch: bool = True
    start: int = 0
    save_best: bool | str = True
    metric: str = DEFAULT_METRIC
    rule: Literal["greater", "less"] = DEFAULT_RULE
    efficient_test: bool = False
    test_fn: Callable[[torch.nn.Module, Any], Any] | None = None

    priority = Priority.LOW
    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        if self.test_fn is not None and not callable(self.test_fn):
            raise parameter_error(self, "test_fn", "must be a function of a model and a loader")
        self._is_named = isinstance(self.save_best, str)
        if isinstance(self.save_best, str):
            self.metric = self.save_best
            self.save_best = True
        self.dataloader = self._make_loaders(self.dataloader)
        self.disable_sites("after_train_iter" if self.by_epoch else "after_train_epoch")

    def before_run(self, runner: BaseRunner) -> None:
        if self.dataloader is not None:
            runner.val_loader = share_loaders(self.dataloader, runner.world.rank, runner.world.size)
            set_default_seed(runner.val_loader, runner.seed)
        runner.evaluation.test_fn = self.test_fn
        runner.evaluation.efficient_test = self.efficient_test
        runner.evaluation.by_epoch = self.by_epoch
        if self.metric != DEFAULT_METRIC:
            runner.best.default_metric = self.metric
        runner.best.vote_on_saving("evaluation", bool(self.save_best))
        tracked = TrackedMetric(self.name, "metric", self.metric, given_rule(self.rule))
        runner.best.track(tracked)

    def before_train(self, runner: BaseRunner) -> None:
        position = runner.epoch if self.by_epoch else runner.iter
        if self.start and position >= self.start and not runner.loop.is_finished():
            runner.request_validate(collective=True)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if self.every_n_epochs(runner, self.interval, self.start):
            runner.request_validate(collective=True)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.interval, self.start):
            runner.request_validate(collective=True)

    def after_val(self, runner: BaseRunner) -> None:
        should_save = self._is_named or (self.save_best and runner.best.should_save)
        if should_save and runner.checkpointer.is_open:
            for metric in runner.best.improved(self.name):
                runner.request_save(f"best_{metric}")

    def _make_loaders(self, given: Any) -> Any:
        """Build the loaders that are given as configs, one or several."""
        if isinstance(given, (list, tuple)) and given and all(map(_is_loader, given)):
            return {str(index): self._make_loaders(each) for index, each in enumerate(given)}
        if isinstance(given, Mapping) and "dataset" not in given:
            return {str(name): self._make_loaders(each) for name, each in given.items()}
        if isinstance(given, Mapping):
            options = {str(key): value for key, value in given.items() if key != "dataset"}
            return make_loader(DATASETS.build(given["dataset"]), **options)
        if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
            expected = "must be iterable, or a mapping with its 'dataset'"
            raise parameter_error(self, "dataloader", expected, value=given)
        return given


def _is_loader(given: Any) -> bool:
    """Return whether an entry of a list is a loader or its config, and not a batch."""
    return hasattr(given, "dataset") or (isinstance(given, Mapping) and "dataset" in given)


@HOOKS.register()
@dataclass
class DistEvalHook(EvalHook):
    """Request validation in a distributed run. Each rank validates its share of the data.

    Args:
        broadcast_bn_buffer: Copy the batch norm statistics of rank 0 to all ranks before
            validation.

    Example:
        ```yaml
        hooks:
          - {type: DistEvalHook, interval: 1, metric: accuracy}
        ```
    """

    broadcast_bn_buffer: bool = True

    def before_run(self, runner: BaseRunner) -> None:
        super().before_run(runner)
        runner.evaluation.sync_buffers = self.broadcast_bn_buffer
