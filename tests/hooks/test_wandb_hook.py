"""W&B's own offline runs, read back with its own command."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hookline.hooks.bases.picture import PictureHook
from hookline.visual.canvas import Canvas
from tests.events.parts import BreakAt, PutEverything, image_run
from tests.problems import logged
from tests.waiting import LIMIT_S

wandb = pytest.importorskip("wandb")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("wandb_environment")]


def inspect(run: Path) -> list[dict]:
    command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def history(records: list[dict]) -> dict[str, list[tuple[int, float]]]:
    curves: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        if record["type"] == "history":
            items = record["history"].get("item", record["history"])
            for name, value in items.items():
                if isinstance(value, (int, float)):
                    curves.setdefault(name, []).append((int(items["iteration"]), value))
    return curves


class DrawsLate(PictureHook):
    """Its pictures of the first epoch are drawn when most of the second is over."""

    def __init__(self) -> None:
        self.late = threading.Event()

    def after_train_iter(self, runner):
        if runner.iter in (2, 3):
            self.paint(runner, self.compose)
        if runner.iter == 17:
            self.late.set()

    def compose(self):
        assert self.late.wait(LIMIT_S)
        return [("late", Canvas(4, 4))]


def test_pictures_that_are_drawn_late_are_kept_with_the_iterations_they_are_of(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("WANDB_MODE", "offline")
    image_run(tmp_path, {"type": "WandbHook", "interval": 5}, DrawsLate())
    records = inspect(runs(tmp_path)[0])
    rows = [
        record["history"].get("item", record["history"])
        for record in records
        if record["type"] == "history"
    ]
    assert [
        int(row["iteration"])
        for row in rows
        if any(name.startswith("DrawsLate/late") for name in row)
    ] == [3, 4]
    assert [step for step, _ in history(records)["train/loss"]] == [5, 10, 15, 20]
    assert "step_metric" in json.dumps(records)


def runs(folder: Path) -> list[Path]:
    return sorted((folder / "wandb").glob("offline-run-*"))


def test_an_offline_run_holds_everything(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("WANDB_MODE", "offline")
    hook = {
        "type": "WandbHook",
        "project": "digits",
        "name": "first",
        "config": {"extra": 7, "api_key": "hunter2"},
        "interval": 5,
    }
    with caplog.at_level(logging.WARNING, logger="hookline"):
        runner = image_run(
            tmp_path,
            {**hook, "log_model": True},
            PutEverything(),
            {"type": "HistogramHook", "interval": 10},
        )
    (run,) = runs(tmp_path)
    records = inspect(run)
    text = json.dumps(records)
    started = next(record["run"] for record in records if record["type"] == "run")
    assert (started["project"], started["display_name"], started["run_id"]) == (
        "digits",
        "first",
        runner.hook("first").run_id,
    )
    curves = history(records)
    assert [step for step, _ in curves["train/loss"]] == [5, 10, 15, 20]
    assert curves["val/accuracy"][-1] == (2, pytest.approx(runner.metrics["accuracy"]))
    assert '"extra"' in text
    assert "hunter2" not in text
    assert "pictures/ramp" in text
    assert "numbers" in text
    assert "weights/3/weight" in text
    assert "checkpoints-last.pth" in text
    assert f"wandb sync {run}" in caplog.text


def test_without_an_account_the_run_is_recorded_offline_and_resumed_under_its_id(tmp_path, caplog):
    hook = {"type": "WandbHook", "interval": 5}
    with pytest.raises(RuntimeError), caplog.at_level(logging.WARNING, logger="hookline"):
        image_run(tmp_path, hook, BreakAt(17))
    assert logged(caplog, "W&B", "offline")
    resumed = image_run(tmp_path, hook, resume="auto")
    run_id = resumed.hook("WandbHook").run_id
    assert len(runs(tmp_path)) == 2
    assert {run.name.split("-")[3] for run in runs(tmp_path)} == {
        run_id
    }  # W&B adds "-1" where two begin in the same second


def test_a_server_that_is_not_there_costs_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("hookline.events.wandb.INIT_TIMEOUT", 3)
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    with caplog.at_level(logging.WARNING, logger="hookline"):
        image_run(tmp_path, {"type": "WandbHook", "interval": 5})
    assert logged(caplog, "W&B")
    assert [step for step, _ in history(inspect(runs(tmp_path)[-1]))["train/loss"]] == [
        5,
        10,
        15,
        20,
    ]
