"""Validate: when, on which data, and by which metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.data import DATASETS, make_loader, share_loaders
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least
from hookline.metrics.best import DEFAULT_METRIC, TrackedMetric


@HOOKS.register()
@dataclass
class EvalHook(BaseHook):
    """Request validation at an interval and keep the best result.

    If the data set has an `evaluate` method, it receives all predictions.

    Args:
        dataloader: A loader, or several by name; the names become prefixes of the metrics. In a
            config, a loader is `{dataset: {type: …}, batch_size: …}`. None uses the loader of the
            runner.
        interval: Number of epochs (or iterations) between two validations.
        by_epoch: Count `interval` and `start` in epochs. Otherwise count iterations.
        start: First epoch (or iteration) to validate. If it is above 0, a run that resumes later is
            validated before it continues.
        save_best: Save the best model. A string is another way to give `metric`.
        metric: Metric of the best model. `auto`, and a default that is not measured, stand for the
            first metric.
        rule: `less` if lower is better. With `greater`, the direction comes from the name of the
            metric.
        efficient_test: Do not keep predictions for the `evaluate` method of the data set.
        test_fn: Function `test_fn(model, loader)` that replaces the pass over the data. It returns
            metrics by name, or predictions for the `evaluate` method of the data set.

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
    rule: Literal["greater", "less"] = "greater"
    efficient_test: bool = False
    test_fn: Callable[[torch.nn.Module, Any], Any] | None = None

    priority = Priority.LOW
    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        if self.test_fn is not None and not callable(self.test_fn):
            raise parameter_error(self, "test_fn", "must be a function of a model and a loader")
        if isinstance(self.save_best, str):
            self.metric = self.save_best
            self.save_best = True
        self.dataloader = self._make_loaders(self.dataloader)
        self.disable_sites("after_train_iter" if self.by_epoch else "after_train_epoch")

    def before_run(self, runner: BaseRunner) -> None:
        if self.dataloader is not None:
            runner.val_loader = share_loaders(self.dataloader, runner.world.rank, runner.world.size)
        runner.evaluation.test_fn = self.test_fn
        runner.evaluation.efficient_test = self.efficient_test
        if self.metric != DEFAULT_METRIC:
            runner.best.default_metric = self.metric
        runner.best.track(TrackedMetric(self.name, "metric", self.metric, self.rule))

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
        if self.save_best and runner.checkpointer.is_open:
            for metric in runner.best.improved(self.name):
                runner.request_save(f"best_{metric}")

    def _make_loaders(self, given: Any) -> Any:
        """Build the loaders that are given as configs, one or several by name."""
        if isinstance(given, Mapping) and "dataset" not in given:
            return {str(name): self._make_loaders(each) for name, each in given.items()}
        if isinstance(given, Mapping):
            options = {str(key): value for key, value in given.items() if key != "dataset"}
            return make_loader(DATASETS.build(given["dataset"]), **options)
        if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
            expected = "must be iterable, or a mapping with its 'dataset'"
            raise parameter_error(self, "dataloader", expected, value=given)
        return given


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
