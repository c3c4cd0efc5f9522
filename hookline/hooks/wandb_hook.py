"""Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.wandb import WandbWriter
from hookline.secrets import mask_secrets
from hookline.tracking import TrackerHook


@HOOKS.register("WandbLoggerHook")
@HOOKS.register()
@dataclass
class WandbHook(TrackerHook):
    """Log to Weights & Biases every `interval` iterations; a resumed run goes on in the same W&B run.

    `config` is added to the run's own. `log_model` uploads the last and the best checkpoints, `log_code` the Python files of
    the working directory. Without an account or a server the run is recorded offline, and the end says how to upload it.
    `init_kwargs` go to `wandb.init`.
    """

    project: str | None = None
    name: str = ""
    config: dict[str, Any] | None = None
    log_model: bool = False
    interval: int = 50
    log_code: bool = False
    init_kwargs: dict[str, Any] | None = None
    run_id: str = state("")

    module = "wandb"
    extra = "wandb"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._title = self.name or None  # the hook goes by it too; without one it is named after its class

    def open_writer(self, runner: BaseRunner) -> WandbWriter:
        return WandbWriter(self.project, self._title, self.run_id, runner.work_dir, self.log_code, self.init_kwargs)

    def config_of(self, runner: BaseRunner) -> Mapping[str, Any]:
        return {**super().config_of(runner), **mask_secrets(self.config or {})}
