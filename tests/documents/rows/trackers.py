"""Rows about WandbHook and MLflowHook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hookline.events import delivery
from hookline.hooks import MLflowHook, WandbHook
from tests.documents.runs import full, new_folder
from tests.documents.table import REQUIREMENTS, Section
from tests.waiting import LIMIT_S

QUIET = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_CONSOLE": "off"}

weights = Section(REQUIREMENTS, "wandb hook")
weights.defaults(
    WandbHook,
    {
        "project": None,
        "name": None,
        "config": None,
        "log_model": False,
        "interval": 50,
        "log_code": False,
    },
)


@contextmanager
def offline(folder: Path) -> Iterator[None]:
    """Use W&B without an account, in a directory with one file of code."""
    import wandb

    wandb.teardown()  # First: it removes the address of an earlier service from the environment.
    before, place = dict(os.environ), Path.cwd()
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL"):
        os.environ.pop(name, None)
    os.environ.update(QUIET, HOME=str(folder), NETRC=str(folder / "none"))
    (folder / "code.py").write_text("print('code of the run')\n")
    os.chdir(folder)
    try:
        yield
    finally:
        wandb.teardown()
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)


@cache
def records(everything: bool) -> str:
    """Return the records of an offline run, as W&B's own command reads them, as one text."""
    options: dict[str, Any] = {"interval": 4}
    if everything:
        options.update(project="p1", name="n1", config={"note": "of the hook"})
        options.update(log_model=True, log_code=True)
    folder = new_folder()
    with offline(folder):
        full(WandbHook(**options), folder=folder / "run", config={"own": "of the run"})
        command = [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json"]
        (run,) = (folder / "run" / "wandb").glob("offline-run-*")
        done = subprocess.run([*command, str(run)], capture_output=True, text=True, check=True)
    return done.stdout


def history(everything: bool = False) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in records(everything).splitlines() if line[0] == "{"]
    return [row["history"].get("item", row["history"]) for row in rows if row["type"] == "history"]


def first(kind: str) -> str:
    lines = [line for line in records(True).splitlines() if f'"type":"{kind}"' in line]
    return lines[0]


weights.add("parameter", "`project` is the project of the run", lambda: '"p1"' in first("run"))
weights.add("parameter", "`name` is the name of the run", lambda: '"n1"' in first("run"))


@weights.row("parameter", "`config` is added to the config of the run")
def _() -> None:
    assert "of the hook" in records(True)
    assert "of the run" in records(True)
    assert "of the run" in records(False)
    assert "of the hook" not in records(False)


@weights.row("parameter", "`log_model` uploads the last and the best checkpoint")
def _() -> None:
    assert "checkpoints-last.pth" in records(True)
    assert "checkpoints-best_accuracy.pth" in records(True)
    assert "checkpoints-last.pth" not in records(False)


@weights.row("parameter", "`interval` counts the iterations between two reports")
def _() -> None:
    found = [int(row["iteration"]) for row in history() if "train/loss" in row]
    assert found == [4, 8, 12]


@weights.row("parameter", "`log_code` uploads the code")
def _() -> None:
    assert "code.py" in records(True)
    assert "code.py" not in records(False)


@weights.row("behavior", "losses, metrics and learning rates arrive")
def _() -> None:
    names = {name for row in history() for name in row}
    assert {"train/loss", "train/lr", "val/accuracy"} <= names


flow = Section(REQUIREMENTS, "mlflow hook")


@cache
def tracked() -> Any:
    """Return a client and the run of a local database."""
    from mlflow import MlflowClient

    usual, delivery.PATIENCE = delivery.PATIENCE, LIMIT_S  # for a busy machine
    try:
        runner = full(MLflowHook(interval=4, log_model=True), config={"own": "of the run"})
    finally:
        delivery.PATIENCE = usual
    client = MlflowClient(f"sqlite:///{runner.work_dir / 'mlflow.db'}")
    (run,) = client.search_runs([each.experiment_id for each in client.search_experiments()])
    return client, run


@flow.row("behavior", "the loss and the metrics are logged to MLflow at their steps")
def _() -> None:
    client, run = tracked()
    history = client.get_metric_history(run.info.run_id, "train/loss")
    assert sorted(point.step for point in history) == [4, 8, 12]
    assert "val/accuracy" in run.data.metrics


@flow.row("behavior", "the config becomes parameters, the checkpoints become artifacts")
def _() -> None:
    client, run = tracked()
    assert run.data.params["own"] == "of the run"
    names = [item.path for item in client.list_artifacts(run.info.run_id, "checkpoints")]
    assert {"checkpoints/last.pth", "checkpoints/best_accuracy.pth"} <= set(names)


@flow.row("moment", "the run is opened before training and closed at the end")
def _() -> None:
    assert tracked()[1].info.status == "FINISHED"
