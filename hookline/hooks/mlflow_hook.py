"""MLflow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.mlflow import MLflowWriter
from hookline.secrets import mask_secrets
from hookline.tracking import TrackerHook


@HOOKS.register("MlflowLoggerHook")
@HOOKS.register()
@dataclass
class MLflowHook(TrackerHook):
    """Log metrics, parameters and artifacts to MLflow every `interval` iterations; a resumed run goes on in the same MLflow run.

    Without a `tracking_uri` the environment's `MLFLOW_TRACKING_URI` counts, or else a database in the work directory. The
    server is talked to in a thread: where it does not answer, records wait on disk, and a resumed run delivers them.
    `params` are added to the config; `log_model` uploads the last and the best checkpoints.
    """

    tracking_uri: str | None = None
    exp_name: str = "hookline"
    run_name: str | None = None
    tags: dict[str, str] | None = None
    params: dict[str, Any] | None = None
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "mlflow"
    extra = "mlflow"
    slow = True

    def open_writer(self, runner: BaseRunner) -> MLflowWriter:
        local = f"sqlite:///{(runner.work_dir / 'mlflow.db').absolute()}"
        uri = self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or local
        return MLflowWriter(uri, self.exp_name, self.run_name, self.run_id, self.tags, runner.work_dir / "mlflow")

    def config_of(self, runner: BaseRunner) -> Mapping[str, Any]:
        return {**super().config_of(runner), **mask_secrets(self.params or {})}
