"""Parameters of trackers: observed is what each tracker's own files or database hold."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline import HOOKS
from hookline.hooks import CheckpointHook
from tests.contracts.parameters.rows import Below, Config, Row, rows
from tests.contracts.training import files_below, train
from tests.visual.picture_parts import conv_model, images


def track(hook: Any, folder: Path, **parts: Any) -> None:
    """Train for eight iterations with a tracker and checkpoints."""
    train(folder, hook, CheckpointHook(save_best=False), **parts)


@contextmanager
def inside(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """Make a folder the working directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield patch


def tensorboard(config: Config, folder: Path) -> dict[str, Any]:
    """Return the steps of the curves and pictures in the event files, and the names of texts."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    parts = {"train_loader": images(4), "val_loader": None, "metrics": None}
    track(config, folder, model=conv_model(), **parts)
    (file,) = folder.parent.rglob("events.out.tfevents.*")
    events = EventAccumulator(str(file.parent)).Reload()
    tags = events.Tags()
    pictures = {tag: [each.step for each in events.Images(tag)] for tag in tags["images"]}
    return {
        "folder": file.parent.relative_to(folder.parent).as_posix(),
        "steps": [each.step for each in events.Scalars("train/loss")],
        "pictures": pictures,
        "texts": sorted(tags["tensors"]),
        "graph": tags["graph"],
    }


def wandb(config: Config, folder: Path) -> dict[str, Any]:
    """Return what an offline run holds, as W&B's own program reads it."""
    import wandb

    with inside(folder):
        (folder / "main.py").write_text("print('training')\n", encoding="utf-8")
        track(config, folder)
    program = Path(wandb.__file__).parent / "bin" / "wandb-core"
    command = [str(program), "leet", "inspect", "--json", str(folder / "wandb")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = {"steps": [], "config": set(), "artifacts": set()}
    for line in done.stdout.splitlines():
        record = json.loads(line)
        kind = record["type"]
        content = record[kind] if isinstance(record.get(kind), dict) else {}
        if kind == "run":
            found |= {key: content.get(key) for key in ("project", "display_name", "tags")}
        elif kind == "history" and "train/loss" in content.get("item", content):
            found["steps"].append(content.get("item", content)["iteration"])
        elif kind == "artifact":
            found["artifacts"].add(content["type"])
        elif kind == "config":
            found["config"].add("extra" if "extra" in line else "")
    return found


def mlflow(config: Config, folder: Path) -> dict[str, Any]:
    """Return what MLflow's client finds in its files."""
    from mlflow import MlflowClient

    track(config, folder)
    client = MlflowClient(config["tracking_uri"])
    experiments = client.search_experiments(filter_string="name != 'Default'")
    (experiment,) = experiments
    (run,) = client.search_runs([experiment.experiment_id])
    tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.")}
    tags.pop("hookline.run")
    history = client.get_metric_history(run.info.run_id, "train/loss")
    return {
        "folder": Path(config["tracking_uri"]).name,
        "experiment": experiment.name,
        "name": run.info.run_name,
        "tags": tags,
        "params": run.data.params,
        "steps": sorted(point.step for point in history),
        "artifacts": sorted(item.path for item in client.list_artifacts(run.info.run_id)),
    }


def trackio(config: Config, folder: Path) -> dict[str, Any]:
    """Return the rows of Trackio's databases, and how many files it stores."""
    home = folder / "trackio"
    with trackio_home(home):
        track(config, folder)
    found: dict[str, Any] = {"files": len(files_below(home / "artifacts"))}
    for database in sorted(home.glob("*.db")):
        with sqlite3.connect(database) as connection:
            query = "SELECT run_name, step, metrics FROM metrics ORDER BY id"
            table = connection.execute(query).fetchall()
        reports = found[database.name] = []
        for name, step, metrics in table:
            if "train/loss" in json.loads(metrics):
                reports.append((name.rpartition("-")[0], step))
    return found


@contextmanager
def trackio_home(home: Path) -> Iterator[None]:
    """Let Trackio write below another folder; it reads the environment at its import only."""
    import trackio.media  # all modules with such paths
    from trackio.utils import TRACKIO_DIR

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != trackio.__name__:
                continue
            for attribute, value in list(vars(module).items()):
                if isinstance(value, Path) and value.is_relative_to(TRACKIO_DIR):
                    patch.setattr(module, attribute, home / value.relative_to(TRACKIO_DIR))
        yield


def dvclive(config: Config, folder: Path) -> dict[str, Any]:
    """Return the files of DVCLive, and the steps of the loss."""
    with inside(folder):
        track(config, folder)
    (table,) = folder.rglob("plots/metrics/train/loss.tsv")
    steps = [line.split("\t")[0] for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    live = table.parents[3]
    return {
        "folder": live.relative_to(folder).as_posix(),
        "files": files_below(live),
        "steps": steps,
    }


def dvc_repository(config: Config, folder: Path) -> tuple[int, list[str]]:
    """Return how many experiments a DVC repository has after the run, and the files it keeps."""
    with inside(folder) as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "someone")
            patch.setenv(f"GIT_{role}_EMAIL", "someone@example.com")
        for command in ("init -q", "commit -q --allow-empty -m start"):
            subprocess.run(["git", *command.split()], check=True, capture_output=True)
        track(config, folder / "run")
    return len(files_below(folder / ".git" / "refs" / "exps")), files_below(folder, "*.pth.dvc")


def neptune(config: Config, folder: Path) -> dict[str, Any]:
    """Return the steps of the loss and the paths in Neptune's offline records."""
    track(config, folder)
    (log,) = (folder / "neptune").rglob("data-1.log")
    steps, paths = [], set()
    for line in log.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)["obj"]
        paths.add("/".join(record["path"]))
        if record["path"] == ["train", "loss"]:
            steps += [value["step"] for value in record["values"]]
    return {"steps": steps, "paths": sorted(paths)}


def clearml(config: Config, folder: Path) -> dict[str, Any]:
    """Return the names, the steps of the loss and the artifacts of an offline session."""
    from clearml.config import get_offline_dir

    hook: Any = HOOKS.build(config)
    track(hook, folder)
    steps = []
    with zipfile.ZipFile(f"{get_offline_dir(hook.task_id)}.zip") as session:
        task = json.loads(session.read("task.json"))
        for line in session.read("metrics.jsonl").decode().splitlines():
            for event in json.loads(line):
                if (event.get("metric"), event.get("variant")) == ("loss", "train"):
                    steps.append(event["iter"])
    artifacts = [each["key"] for each in task["execution"]["artifacts"]]
    names = (task["project_name"], task["name"])
    return {"names": names, "steps": steps, "artifacts": sorted(artifacts)}


def swanlab(config: Config, folder: Path) -> dict[str, Any]:
    """Return which words occur in SwanLab's offline records, and the number of its reports."""
    track(config, folder)
    (records,) = (folder / "swanlab").rglob("*.swanlab")
    data = records.read_bytes()
    words = (b"first", b"second", b"here", b"there", b"last.pth")
    files = [name for name in files_below(folder / "swanlab") if name.endswith("last.pth")]
    return {
        "words": [word for word in words if word in data],
        "reports": data.count(b"train/loss"),
        "files": len(files),
    }


HALF = {"interval": 2}

ROWS: dict[str, list[Row]] = {
    "TensorBoardHook": [
        *rows(
            tensorboard,
            HALF,
            log_dir=(None, Below("curves")),
            interval=(2, 3),
            log_graph=(False, True),
            log_model=(False, True),
        ),
        *rows(tensorboard, {**HALF, "image_interval": 2}, log_images=(False, True)),
        *rows(tensorboard, {**HALF, "log_images": True}, image_interval=(2, 3)),
    ],
    "WandbHook": rows(
        wandb,
        {**HALF, "project": "here", "name": "first"},
        project=("here", "there"),
        name=("first", "second"),
        config=(None, {"extra": 7}),
        log_model=(False, True),
        interval=(2, 3),
        log_code=(False, True),
        init_kwargs=(None, {"tags": ["baseline"]}),
    ),
    "MLflowHook": rows(
        mlflow,
        {**HALF, "tracking_uri": Below("store"), "run_name": "first"},
        tracking_uri=(Below("store"), Below("other")),
        exp_name=("hookline", "digits"),
        run_name=("first", "second"),
        tags=(None, {"who": "me"}),
        params=(None, {"extra": 7}),
        log_model=(False, True),
        interval=(2, 3),
    ),
    "TrackioHook": rows(
        trackio,
        {**HALF, "project": "here", "run_name": "first"},
        project=("here", "there"),
        run_name=("first", "second"),
        log_model=(False, True),
        interval=(2, 3),
    ),
    "DVCLiveHook": [
        *rows(
            dvclive,
            HALF,
            dir=(None, Below("live")),
            report=(None, "html"),
            interval=(2, 3),
        ),
        *rows(dvc_repository, {"interval": 8}, save_dvc_exp=(True, False)),
        *rows(dvc_repository, {"interval": 8, "save_dvc_exp": True}, log_model=(False, True)),
    ],
    "NeptuneHook": rows(
        neptune,
        HALF,
        init_kwargs=(None, {"tags": ["baseline"]}),
        log_model=(False, True),
        interval=(2, 3),
    ),
    "ClearMLHook": rows(
        clearml,
        {**HALF, "project": "here", "task_name": "first", "offline": True},
        project=("here", "there"),
        task_name=("first", "second"),
        log_model=(False, True),
        interval=(2, 3),
    ),
    "SwanLabHook": rows(
        swanlab,
        {**HALF, "project": "here", "run_name": "first", "offline": True},
        project=("here", "there"),
        run_name=("first", "second"),
        log_model=(False, True),
        interval=(2, 3),
    ),
}
