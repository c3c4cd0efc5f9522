"""When to validate, and what counts as the best result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority


@HOOKS.register()
@dataclass
class EvalHook(BaseHook):
    """Ask for validation every `interval` epochs (or iterations), from `start` on; keep the best result.

    A run that starts, or resumes, at or after `start` is validated before training goes on, if `start` is not 0.
    """

    dataloader: Any = None
    interval: int = 1
    by_epoch: bool = True
    start: int = 0
    save_best: bool = True
    metric: str = "accuracy"
    rule: Literal["greater", "less"] = "greater"

    priority = Priority.LOW

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"EvalHook: interval must be at least 1, got {self.interval}")
        if self.dataloader is not None and not isinstance(self.dataloader, Iterable):
            raise TypeError(f"EvalHook: dataloader must be iterable, got {type(self.dataloader).__name__}")
        self.leave_alone("after_train_iter" if self.by_epoch else "after_train_epoch")

    def before_run(self, runner: BaseRunner) -> None:
        if self.dataloader is not None:
            runner.val_loader = self.dataloader

    def before_train(self, runner: BaseRunner) -> None:
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
        if runner.improved(self.metric, self.rule) and self.save_best and runner.saver is not None:
            runner.request_save(f"best_{self.metric}")
