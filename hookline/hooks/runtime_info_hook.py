"""Publish the progress of a run for code that has no runner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.optim.groups import learning_rates


@HOOKS.register()
@dataclass
class RuntimeInfoHook(BaseHook):
    """Publish counters, learning rates, loss and metrics as the service `runtime_info`.

    Code without a runner can follow the run through the dict `hook.info`, which is also
    `runner.get_service("runtime_info")`. The loss is a tensor.

    Example:
        ```yaml
        hooks:
          - {type: RuntimeInfoHook}
        ```
    """

    priority = Priority.VERY_HIGH
    adds_metrics = False

    def __post_init__(self) -> None:
        self.info: dict[str, Any] = {}

    def before_run(self, runner: BaseRunner) -> None:
        self.info.update(seed=runner.seed, work_dir=str(runner.work_dir))
        self._update(runner)
        if runner.get_service("runtime_info") is not self.info:
            runner.register_service("runtime_info", self.info)

    def before_train(self, runner: BaseRunner) -> None:
        self._update(runner)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._update(runner)

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.info.update(iter=runner.iter, **learning_rates(runner.optimizer))

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.info["loss"] = runner.outputs["loss"].detach()

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self.info["metrics"] = dict(runner.metrics)

    after_test_epoch = after_val_epoch

    def _update(self, runner: BaseRunner) -> None:
        lengths = {"max_epochs": runner.max_epochs, "max_iters": runner.max_iters}
        self.info.update(
            epoch=runner.epoch, iter=runner.iter, **lengths, **learning_rates(runner.optimizer)
        )
