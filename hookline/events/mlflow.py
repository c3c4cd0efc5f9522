"""The writer for MLflow, on a server or in a local database."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hookline.events.describe import config_text, flat
from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require, tag

RUN_TAG = "hookline.run"
PARAMS_AT_ONCE = 100  # the limit of the server
LONGEST_PARAM = 6000


@WRITERS.register("mlflow")
class MLflowWriter(TrackerWriter):
    """A writer of metrics, parameters and artifacts to an MLflow run; the same ID continues it."""

    slow: ClassVar[bool] = True

    def __init__(
        self,
        tracking_uri: str | None = None,
        experiment: str = "hookline",
        name: str | None = None,
        run_id: str | None = None,
        tags: Mapping[str, str] | None = None,
        local_artifacts: str | Path | None = None,
    ) -> None:
        require("mlflow", "mlflow")
        # Read at each request. Delivery keeps failed records and retries them.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        from mlflow import MlflowClient

        self._client = MlflowClient(tracking_uri)
        known = self._client.get_experiment_by_name(experiment)
        place = (
            str(local_artifacts)
            if local_artifacts is not None and str(self._client.tracking_uri).startswith("sqlite:")
            else None
        )
        experiment_id = (
            known.experiment_id
            if known is not None
            else self._client.create_experiment(experiment, artifact_location=place)
        )
        self._run = self._continued(experiment_id, run_id) or self._client.create_run(
            experiment_id,
            run_name=name,
            tags={**(tags or {}), **({RUN_TAG: run_id} if run_id else {})},
        )
        self.id = self._run.info.run_id

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(_name(key), value, now, step) for key, value in scalars.items()]
        self._client.log_batch(self.id, metrics=metrics)

    def write(self, record: Record) -> None:
        record = portable(record)
        name, value = _name(record.name), record.value
        if record.kind == "image":
            self._client.log_image(
                self.id, value, artifact_file=f"images/{name}/step_{record.step:06d}.png"
            )
        elif record.kind == "histogram":
            content = {"counts": value.counts.tolist(), "edges": value.edges.tolist()}
            self._client.log_dict(
                self.id, content, f"histograms/{name}/step_{record.step:06d}.json"
            )
        elif record.kind == "text":
            self._client.log_text(self.id, value, f"text/{name}.txt")
        else:
            self._client.log_artifact(
                self.id, str(value), str(Path(name).parent) if "/" in name else "files"
            )

    def holds(self, mode: str, name: str, step: int, value: float | None = None) -> bool:
        history = self._client.get_metric_history(self.id, _name(tag(mode, name)))
        return any(
            point.step == step and (value is None or _is_same(point.value, value))
            for point in history
        )

    def write_config(self, config: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        self._client.log_text(self.id, config_text(config), "config.yaml")
        known = self._client.get_run(self.id).data.params  # These cannot be changed.
        params = [
            Param(_name(key), str(value)[:LONGEST_PARAM])
            for key, value in flat(config).items()
            if _name(key) not in known
        ]
        for start in range(0, len(params), PARAMS_AT_ONCE):
            self._client.log_batch(self.id, params=params[start : start + PARAMS_AT_ONCE])

    def close(self) -> None:
        self._client.set_terminated(self.id, "FAILED" if self.failed else "FINISHED")

    def _continued(self, experiment_id: str, run_id: str | None) -> Any:
        if run_id is None:
            return None
        found = self._client.search_runs(
            [experiment_id], filter_string=f"tags.`{RUN_TAG}` = '{run_id}'", max_results=1
        )
        if not found:
            return None
        self._client.update_run(found[0].info.run_id, status="RUNNING")
        return found[0]


def _is_same(stored: float, value: float) -> bool:
    return stored == value or (math.isnan(stored) and math.isnan(value))


def _name(text: str) -> str:
    """Return a name that MLflow accepts and that stays below the folder of the run."""
    plain = re.sub(r"[^\w.\- /:]", "_", text)
    return "/".join(part for part in plain.split("/") if part not in ("", ".", "..")) or "_"
