"""A real MLflow server on loopback, with a database; also one that goes away."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from hookline.engine import BaseHook
from tests.events.parts import BreakAt, PutEverything, image_run

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.slow


class Server:
    """`mlflow server` in a folder; what it stores outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{self.folder / 's.db'}"]
        command += [
            "--artifacts-destination",
            str(self.folder / "artifacts"),
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--workers",
            "1",
        ]
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )
        deadline = time.monotonic() + 120
        while not self._answers():
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < deadline, "the server did not answer"
            time.sleep(0.3)

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        while self._answers():
            time.sleep(0.1)

    def run_of(self, hook: BaseHook) -> object:
        (run,) = self.client().search_runs(
            [each.experiment_id for each in self.client().search_experiments()], f"tags.`hookline.run` = '{hook.run_id}'"
        )
        return run

    def steps(self, run, metric: str) -> list[int]:
        return sorted(point.step for point in self.client().get_metric_history(run.info.run_id, metric))

    def artifacts(self, run, folder: str | None = None) -> set[str]:
        found = set()
        for item in self.client().list_artifacts(run.info.run_id, folder):
            found |= self.artifacts(run, item.path) if item.is_dir else {item.path}
        return found

    def client(self):
        return mlflow.MlflowClient(self.uri)

    def _answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.uri}/health", timeout=2).status == 200
        except OSError:
            return False


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.stop()


def test_the_server_answers_with_metrics_parameters_and_artifacts(server, tmp_path):
    hook = {"type": "MLflowHook", "tracking_uri": server.uri, "exp_name": "digits", "run_name": "first", "interval": 5, "log_model": True}
    hook |= {"tags": {"who": "me"}, "params": {"extra": 7, "password": "hunter2"}}
    runner = image_run(tmp_path, hook, PutEverything(), {"type": "HistogramHook", "interval": 20})
    run = server.run_of(runner.hook("MLflowHook"))
    assert (run.info.run_name, run.info.status, run.data.tags["who"]) == ("first", "FINISHED", "me")
    assert server.client().get_experiment(run.info.experiment_id).name == "digits"
    assert server.steps(run, "train/loss") == [5, 10, 15, 20]
    assert server.steps(run, "val/accuracy") == [10, 20]
    assert run.data.metrics["val/accuracy"] == pytest.approx(runner.metrics["accuracy"])
    assert (run.data.params["optimizer.lr"], run.data.params["extra"], run.data.params["password"]) == ("0.1", "7", "***")
    assert server.artifacts(run) >= {
        "config.yaml",
        "text/model.txt",
        "text/note.txt",
        "images/pictures/ramp/step_000000.png",
        "histograms/numbers/step_000000.json",
        "histograms/weights/0/weight/step_000019.json",
        "results/result.txt",
        "checkpoints/last.pth",
        "checkpoints/best_accuracy.pth",
    }
    stored = server.client().download_artifacts(run.info.run_id, "checkpoints/last.pth", str(tmp_path))
    assert Path(stored).read_bytes() == (runner.store.directory / "last.pth").read_bytes()


def test_a_run_that_fails_is_marked_and_a_resumed_one_goes_on_in_the_same_run(server, tmp_path):
    hook = {"type": "MLflowHook", "tracking_uri": server.uri, "interval": 5}
    failed = None

    class Keep(BaseHook):
        def before_train(self, runner):
            nonlocal failed
            failed = runner.hook("MLflowHook")

    with pytest.raises(RuntimeError):
        image_run(tmp_path, hook, BreakAt(12), Keep())
    run = server.run_of(failed)
    assert run.info.status == "FAILED"
    resumed = image_run(tmp_path, hook, resume="auto")
    again = server.run_of(resumed.hook("MLflowHook"))
    assert again.info.run_id == run.info.run_id
    assert again.info.status == "FINISHED"
    assert server.steps(again, "train/loss") == [5, 10, 15, 20]


def test_the_server_is_stopped_in_the_middle_of_a_run_and_nothing_is_lost(server, tmp_path, caplog):
    class StopServer(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 11:
                wait_for(lambda: delivered(runner) == [10])
                server.stop()

    def delivered(runner):
        try:
            return server.steps(server.run_of(runner.hook("MLflowHook")), "val/accuracy")
        except ValueError:  # no such run yet
            return []

    hook = {"type": "MLflowHook", "tracking_uri": server.uri, "interval": 5}
    with caplog.at_level(logging.WARNING, logger="hookline"):
        started = time.monotonic()
        first = image_run(tmp_path / "run", hook, StopServer(), epochs=2)
    assert first.iter == 20
    assert time.monotonic() - started < 120
    assert "MLflowHook fails" in caplog.text
    assert "were not delivered, reports of iterations 15 to 20 among them" in caplog.text
    assert (tmp_path / "run" / "MLflowHook.undelivered.jsonl").exists()
    server.start()
    again = image_run(tmp_path / "run", hook, epochs=3, resume="auto")
    run = server.run_of(again.hook("MLflowHook"))
    assert again.hook("MLflowHook").run_id == first.hook("MLflowHook").run_id
    assert server.steps(run, "train/loss") == [5, 10, 15, 20, 25, 30]
    assert server.steps(run, "val/accuracy") == [10, 20, 30]
    assert run.info.status == "FINISHED"
    assert not (tmp_path / "run" / "MLflowHook.undelivered.jsonl").exists()


def wait_for(condition, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
