"""When to validate, on what, and what counts as the best result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.data import DATASETS, make_loader, share_loaders
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.engine.metrics import DEFAULT_METRIC, DEFAULT_RULE, Unasked, choose_metric


@HOOKS.register()
@dataclass
class EvalHook(BaseHook):
    """Ask for validation every `interval` epochs (or iterations), from `start` on; keep the best result in `metric`.

    `dataloader` is a loader (the runner's if None), or several by name, whose metrics get the name as a prefix; in a config a
    loader is `{dataset: {type: …}, batch_size: …}`. A run that resumes at or after a `start` above 0 is validated before it goes
    on. `metric`, or `save_best` as text, names the metric of the best model, `auto` for the first one. `test_fn(model, loader)`
    replaces the pass over the data and returns metrics by name, or predictions for the data set's own `evaluate`; without
    it the predictions are kept for a data set that has `evaluate`, unless `efficient_test`.
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
        if self.interval < 1:
            raise ValueError(f"EvalHook: interval must be at least 1, got {self.interval}")
        if self.test_fn is not None and not callable(self.test_fn):
            raise TypeError(f"EvalHook: test_fn must be a function of a model and a loader, got {self.test_fn!r}")
        if isinstance(self.save_best, str):
            self.metric, self.save_best = self.save_best, True
        self._asked, self.metric = not isinstance(self.metric, Unasked), str(self.metric)
        self.dataloader = _loaders(self.dataloader)
        self.leave_alone("after_train_iter" if self.by_epoch else "after_train_epoch")

    def before_run(self, runner: BaseRunner) -> None:
        if self.dataloader is not None:
            runner.val_loader = share_loaders(self.dataloader, runner.world.rank, runner.world.size)
        runner.evaluation.test_fn, runner.evaluation.efficient_test = self.test_fn, self.efficient_test
        if self._asked:
            runner.evaluation.best_metric = self.metric

    def before_train(self, runner: BaseRunner) -> None:
        names = runner.evaluation.names(runner)
        chosen = runner.evaluation.check_name(runner, self.name, self.metric, DEFAULT_METRIC)
        runner.evaluation.set_rule(runner, self.name, self.metric, self.rule)
        if chosen is not None and (self._asked or names != [chosen]):  # of one there was nothing to choose
            missing = f"{self.metric} is not measured, " if self._asked and self.metric != "auto" else ""
            best = "highest" if runner.evaluation.rule_of(runner, chosen, self.rule) == "greater" else "lowest"
            runner.logger.info("%s: %sthe best result is the one with the %s %s", self.name, missing, best, chosen)
        position = runner.epoch if self.by_epoch else runner.iter
        if self.start and position >= self.start and not runner.is_finished():
            runner.request_validate()

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if self.every_n_epochs(runner, self.interval, self.start):
            runner.request_validate()

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.interval, self.start):
            runner.request_validate()

    def after_val_epoch(self, runner: BaseRunner) -> None:
        metric = choose_metric(self.metric, runner.metrics, DEFAULT_METRIC)
        if metric is None or not runner.improved(metric, runner.evaluation.rule_of(runner, metric, self.rule)):
            return
        if self.save_best and runner.saver is not None:
            runner.request_save(f"best_{metric}")


@HOOKS.register()
@dataclass
class DistEvalHook(EvalHook):
    """EvalHook for a distributed run: each process validates its share; before that all take over the first one's BN statistics."""

    broadcast_bn_buffer: bool = True

    def before_run(self, runner: BaseRunner) -> None:
        super().before_run(runner)
        runner.evaluation.sync_buffers = self.broadcast_bn_buffer


def _loaders(given: Any) -> Any:
    """Loaders from what was given: a loader, the config of one, or a mapping with several of either by name."""
    if isinstance(given, Mapping) and "dataset" not in given:
        return {str(name): _loaders(each) for name, each in given.items()}
    if isinstance(given, Mapping):
        return make_loader(DATASETS.build(given["dataset"]), **{str(key): value for key, value in given.items() if key != "dataset"})
    if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
        raise TypeError(f"EvalHook: dataloader must be iterable, or a mapping with its 'dataset', got {given!r}")
    return given
