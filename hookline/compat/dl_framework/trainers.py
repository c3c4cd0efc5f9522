"""`BaseTrainer(config)`: a runner with the services that hooks of `dl_framework` ask for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.compat.dl_framework.visualizer import Visualizer
from hookline.compat.missing import not_covered
from hookline.config import build, load_config
from hookline.engine import BaseHook, BaseRunner, Metrics, state
from hookline.engine.registration import HookOrConfig
from hookline.hooks import CheckpointHook
from hookline.runner import Runner

Config = Mapping[str, Any] | str | os.PathLike[str]


class BaseTrainer(Runner):
    """Builds model, data, optimizer and hooks from a config (or its file); `train()` trains.

    Besides what every runner offers (`trainer`, `config`, `model`, `train_loader`, `val_loader`, `optimizer`, `scheduler`,
    `device`, `logger`, `experiment_dir`) its services are `checkpoints_dir`, `logs_dir`, `visualization_dir` and
    `visualizer`. The `metrics` of an epoch have its mean training loss as `train_loss`.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(**build(config if isinstance(config, Mapping) else load_config(config)))
        self.register_hook(EpochMetricsHook(), priority="LOWEST" if self.hook_order == "nested" else "HIGHEST")
        saver = next((hook for hook in self.hooks if isinstance(hook, CheckpointHook)), None)
        if saver is not None and saver.out_dir is not None:
            self.register_service("checkpoints_dir", Path(saver.out_dir))

    @classmethod
    def from_config(cls, config: Config, overrides: Sequence[str] = ()) -> BaseTrainer:
        return cls(load_config(config, overrides))

    def register_hooks(self, hooks: Iterable[HookOrConfig]) -> None:
        if "visualizer" not in vars(self.services):  # the hooks of the config come next, and may ask for these by name
            self.register_service("checkpoints_dir", self.work_dir)
            self.register_service("logs_dir", self.work_dir)
            self.register_service("visualization_dir", self.work_dir / "visualizations")
            self.register_service("visualizer", Visualizer(self.events))
        super().register_hooks(hooks)

    def train(self) -> BaseTrainer:
        for name in ("checkpoints_dir", "logs_dir", "visualization_dir"):
            self.get_service(name).mkdir(parents=True, exist_ok=True)
        super().train()
        return self


@dataclass
class EpochMetricsHook(BaseHook):
    """Keep in `metrics` what was measured in the epoch alone, and its mean training loss; the first hook of `after_epoch`."""

    total: Any = state(0.0)
    count: int = state(0)

    def before_epoch(self, runner: BaseRunner) -> None:
        if runner.inner_iter == 0:  # else the run was resumed in the middle of the epoch
            runner.metrics = Metrics()
            self.total, self.count = 0.0, 0

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.total = self.total + runner.outputs["loss"].detach()
        self.count += 1

    def after_epoch(self, runner: BaseRunner) -> None:
        runner.metrics["train_loss"] = float(self.total) / self.count


__getattr__ = not_covered(__name__, ["BaseTrainer"])
