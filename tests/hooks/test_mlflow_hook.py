"""Against a real MLflow server; also one that goes away."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hookline.engine import BaseHook
from tests.events.parts import BreakAt, PutEverything, image_run
from tests.problems import logged
from tests.waiting import wait_until

mlflow = pytest.importorskip("mlflow")
pytestmark = pytest.mark.slow


def test_the_server_answers_with_metrics_parameters_and_artifacts(mlflow_server, tmp_path):
    hook = {
        "type": "MLflowHook",
        "tracking_uri": mlflow_server.uri,
        "exp_name": "digits",
        "run_name": "first",
        "interval": 5,
        "log_model": True,
    }
    hook |= {"tags": {"who": "me"}, "params": {"extra": 7, "password": "hunter2"}}
    runner = image_run(tmp_path, hook, PutEverything(), {"type": "HistogramHook", "interval": 20})
    run = mlflow_server.run_of(runner.hook("MLflowHook"))
    assert (run.info.run_name, run.info.status, run.data.tags["who"]) == ("first", "FINISHED", "me")
    assert mlflow_server.client().get_experiment(run.info.experiment_id).name == "digits"
    assert mlflow_server.steps(run, "train/loss") == [5, 10, 15, 20]
    assert mlflow_server.steps(run, "val/accuracy") == [1, 2]
    assert run.data.metrics["val/accuracy"] == pytest.approx(runner.metrics["accuracy"])
    assert (
        run.data.params["optimizer.lr"],
        run.data.params["extra"],
        run.data.params["password"],
    ) == ("0.1", "7", "***")
    assert mlflow_server.artifacts(run) >= {
        "config.yaml",
        "text/model.txt",
        "text/note.txt",
        "images/pictures/ramp/step_000001.png",
        "histograms/numbers/step_000001.json",
        "histograms/weights/0/weight/step_000020.json",
        "results/result.txt",
        "checkpoints/last.pth",
        "checkpoints/best_accuracy.pth",
    }
    stored = mlflow_server.client().download_artifacts(
        run.info.run_id, "checkpoints/last.pth", str(tmp_path)
    )
    assert (
        Path(stored).read_bytes() == (runner.checkpointer.store.directory / "last.pth").read_bytes()
    )


def test_a_run_that_fails_is_marked_and_a_resumed_one_continues_in_the_same_run(
    mlflow_server, tmp_path
):
    hook = {"type": "MLflowHook", "tracking_uri": mlflow_server.uri, "interval": 5}
    failed = None

    class Keep(BaseHook):
        def before_train(self, runner):
            nonlocal failed
            failed = runner.hook("MLflowHook")

    with pytest.raises(RuntimeError):
        image_run(tmp_path, hook, BreakAt(12), Keep())
    run = mlflow_server.run_of(failed)
    assert run.info.status == "FAILED"
    resumed = image_run(tmp_path, hook, resume="auto")
    again = mlflow_server.run_of(resumed.hook("MLflowHook"))
    assert again.info.run_id == run.info.run_id
    assert again.info.status == "FINISHED"
    assert mlflow_server.steps(again, "train/loss") == [5, 10, 15, 20]


def test_the_server_is_stopped_in_the_middle_of_a_run_and_nothing_is_lost(
    mlflow_server, tmp_path, caplog
):
    class StopServer(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 11:
                wait_until(lambda: delivered(runner) == [1], "delivery of the first validation")
                mlflow_server.stop()

    def delivered(runner):
        try:
            return mlflow_server.steps(
                mlflow_server.run_of(runner.hook("MLflowHook")), "val/accuracy"
            )
        except ValueError:  # no such run yet
            return []

    hook = {"type": "MLflowHook", "tracking_uri": mlflow_server.uri, "interval": 5}
    with caplog.at_level(logging.WARNING, logger="hookline"):
        first = image_run(tmp_path / "run", hook, StopServer(), epochs=2)
    assert first.iter == 20
    assert logged(caplog, "MLflowHook")
    assert logged(caplog, "iterations 15 to 20")
    assert (tmp_path / "run" / "MLflowHook.undelivered.jsonl").exists()
    mlflow_server.start()
    again = image_run(tmp_path / "run", hook, epochs=3, resume="auto")
    run = mlflow_server.run_of(again.hook("MLflowHook"))
    assert again.hook("MLflowHook").run_id == first.hook("MLflowHook").run_id
    assert mlflow_server.steps(run, "train/loss") == [5, 10, 15, 20, 25, 30]
    assert mlflow_server.steps(run, "val/accuracy") == [1, 2, 3]
    assert run.info.status == "FINISHED"
    assert not (tmp_path / "run" / "MLflowHook.undelivered.jsonl").exists()
