"""Log to MLflow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.mlflow import MLflowWriter
from hookline.hooks.bases.tracker import TrackerHook
from hookline.secrets import mask_secrets


@HOOKS.register("MlflowLoggerHook")
@HOOKS.register()
@dataclass
class MLflowHook(TrackerHook):
    """Log to MLflow. A resumed run continues the same MLflow run.

    A background thread talks to the server. While the server does not answer, records wait on disk,
    and a resumed run delivers them.

    Args:
        tracking_uri: Address of the server or database. None uses `MLFLOW_TRACKING_URI`, or else a
            database in the work directory.
        exp_name: Name of the experiment.
        run_name: Name of the MLflow run.
        tags: Tags of the MLflow run.
        params: Parameters to log in addition to the config.
        log_model: Upload the last and the best checkpoints.
        interval: Number of iterations between two reports of scalars.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: MLflowHook, exp_name: digits, run_name: cnn, tags: {data: v2}}
        ```
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
        return MLflowWriter(
            uri, self.exp_name, self.run_name, self.run_id, self.tags, runner.work_dir / "mlflow"
        )

    def config_of(self, runner: BaseRunner) -> Mapping[str, Any]:
        return {**super().config_of(runner), **mask_secrets(self.params or {})}
