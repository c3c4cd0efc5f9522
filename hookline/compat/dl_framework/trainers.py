"""`BaseTrainer`: a runner with the services of `dl_framework`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hookline.compat.missing import not_covered
from hookline.config import build, load_config
from hookline.engine import BaseHook, BaseRunner, Metrics, state
from hookline.hooks import CheckpointHook
from hookline.runner import Runner

Config = Mapping[str, Any] | str | os.PathLike[str]


class BaseTrainer(Runner):
    """A trainer whose model, data, optimizer and hooks come from a config or its file.

    It has the services of every runner, and makes the directories among them. The `metrics` of an
    epoch include its mean training loss as `train_loss`.
    """

    def __init__(self, config: Config) -> None:
        if not isinstance(config, Mapping):
            config = load_config(config)
        super().__init__(**build(config))
        # It must be the first hook of after_epoch, where the others read the metrics.
        priority = "LOWEST" if self.sites.order == "nested" else "HIGHEST"
        self.register_hook(EpochMetricsHook(), priority=priority)
        for hook in self.hooks:
            if isinstance(hook, CheckpointHook) and hook.out_dir is not None:
                self.register_service("checkpoints_dir", Path(hook.out_dir))
                break

    @classmethod
    def from_config(cls, config: Config, overrides: Sequence[str] = ()) -> BaseTrainer:
        return cls(load_config(config, overrides))

    def train(
        self,
        *extra: NoReturn,
        max_epochs: int | None = None,
        max_iters: int | None = None,
        **unknown: NoReturn,
    ) -> BaseTrainer:
        for name in ("checkpoints_dir", "logs_dir", "visualization_dir"):
            self.get_service(name).mkdir(parents=True, exist_ok=True)
        super().train(*extra, max_epochs=max_epochs, max_iters=max_iters, **unknown)
        return self


@dataclass
class EpochMetricsHook(BaseHook):
    """Restricts `metrics` to the results of the epoch, and adds its mean training loss."""

    total: Any = state(0.0)
    count: int = state(0)

    def before_epoch(self, runner: BaseRunner) -> None:
        if runner.inner_iter == 0:  # not resumed in the middle of the epoch
            runner.metrics = Metrics()
            self.total = 0.0
            self.count = 0

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.total = self.total + runner.outputs["loss"].detach()
        self.count += 1

    def after_epoch(self, runner: BaseRunner) -> None:
        runner.metrics["train_loss"] = float(self.total) / self.count


__getattr__ = not_covered(__name__, ["BaseTrainer"])
