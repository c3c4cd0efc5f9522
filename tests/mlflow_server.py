"""`mlflow server` on loopback, with a database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import mlflow

from hookline.engine import BaseHook
from tests.waiting import wait_until


class Server:
    """`mlflow server` in a folder, which keeps its data when the server stops."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--backend-store-uri",
            f"sqlite:///{self.folder / 's.db'}",
        ]
        command += ["--artifacts-destination", str(self.folder / "artifacts"), "--workers", "1"]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "server.log").open("a") as log:
            quiet = {
                "MLFLOW_DISABLE_TELEMETRY": "true",
                "DO_NOT_TRACK": "true",
                "OMP_NUM_THREADS": "1",
            }
            quiet["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = (
                "false"  # It would start three more processes.
            )
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **quiet}
            )
        wait_until(
            lambda: self._answers() or self.process.poll() is not None,
            "an answer of the server",
            (self.folder / "server.log").read_text,
        )
        assert self.process.poll() is None, (self.folder / "server.log").read_text()

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        wait_until(lambda: not self._answers(), "the end of the server")

    def run_of(self, hook: BaseHook) -> object:
        (run,) = self.client().search_runs(
            [each.experiment_id for each in self.client().search_experiments()],
            f"tags.`hookline.run` = '{hook.run_id}'",
        )
        return run

    def steps(self, run, metric: str) -> list[int]:
        return sorted(
            point.step for point in self.client().get_metric_history(run.info.run_id, metric)
        )

    def artifacts(self, run, folder: str | None = None) -> set[str]:
        found = set()
        for item in self.client().list_artifacts(run.info.run_id, folder):
            found |= self.artifacts(run, item.path) if item.is_dir else {item.path}
        return found

    def client(self):
        return mlflow.MlflowClient(self.uri)

    def _answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.uri}/health", timeout=30).status == 200
        except OSError:
            return False
