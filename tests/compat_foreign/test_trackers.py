"""The trackers among the callbacks of transformers, with their real packages and without a network.

Each runs in the Trainer and here; what it wrote is read back and compared.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import zipfile

import pytest
from transformers import integrations

from hookline.compat.transformers import wrap
from hookline.hooks import CheckpointHook, LoggerHook
from tests.compat_foreign.matrix import CANNOT, shows
from tests.compat_foreign.test_transformers import NAME, run_dicts_here, run_there
from tests.waiting import LIMIT_S

SAME = "the same values at the same steps"
EPOCHS = 2
LOGGED = (
    "loss",
    "learning_rate",
    "eval_loss",
)  # the Trainer's own speed and the norm of gradients are its own


def run(place, folder, callback, *others, **arguments):
    """The callback in one of the two places, with the same logging and saving."""
    folder.mkdir(parents=True, exist_ok=True)
    if place == "there":
        return run_there(
            folder, callback, *others, epochs=EPOCHS, save_strategy="epoch", **arguments
        )
    return run_dicts_here(
        folder,
        wrap(callback, **arguments),
        *others,
        LoggerHook(interval=2),
        CheckpointHook(),
        epochs=EPOCHS,
    )


def in_both(tmp_path, make, read, done=lambda callback: None, **arguments):
    """What a callback wrote (`read` gets its folder and itself) in the Trainer, and here."""
    found = []
    for place in ("there", "here"):
        callback = make(tmp_path / place)
        run(place, tmp_path / place, callback, **arguments)
        done(callback)
        found.append(read(tmp_path / place, callback))
    return found


def same_curves(there, here, names=("train/loss", "train/learning_rate", "eval/loss")):
    """Whether two dicts of (step, value) by name have the same curves."""
    for name in names:
        assert [step for step, _ in here[name]] == [step for step, _ in there[name]], name
        assert [value for _, value in here[name]] == pytest.approx(
            [value for _, value in there[name]], rel=1e-4
        ), name
    assert len(here[names[0]]) == 6
    assert len(here[names[-1]]) == 2
    return True


def curves(rows):
    """(name, step, value) as curves by name."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name, step, value in rows:
        found.setdefault(name, []).append((step, value))
    return found


def inspect(folder):
    """The records of the W&B run below a folder, read with W&B's own command."""
    (path,) = (folder / "wandb").glob("offline-run-*")
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture
def wandb(monkeypatch, tmp_path):
    wandb = pytest.importorskip("wandb")
    settings = {"MODE": "offline", "SILENT": "true", "CONSOLE": "off", "LOG_MODEL": "checkpoint"}
    quick = {
        "X_SAVE_REQUIREMENTS": "false",
        "X_DISABLE_STATS": "true",
        "X_DISABLE_META": "true",
        "DISABLE_GIT": "true",
    }
    for name, value in {**settings, **quick}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    wandb.teardown()  # it reads the environment only once
    yield wandb
    wandb.teardown()


@shows(
    NAME,
    "WandbCallback",
    f"{SAME}, in W&B's offline run; artifacts are Hookline checkpoints",
)
def test_wandb_callback(tmp_path, wandb, monkeypatch):
    def make(folder):
        folder.mkdir()
        monkeypatch.setenv("WANDB_DIR", str(folder))
        return integrations.WandbCallback()

    def done(callback):
        wandb.finish()
        wandb.teardown()

    def history(records):
        items = [
            record["history"].get("item", record["history"])
            for record in records
            if record["type"] == "history"
        ]
        return curves(
            (name, row["train/global_step"], value)
            for row in items
            for name, value in row.items()
            if isinstance(value, int | float)
        )

    there, here = in_both(tmp_path, make, lambda folder, callback: inspect(folder), done)
    assert same_curves(history(there), history(here))
    assert "per_device_train_batch_size" in json.dumps(here)
    aliases = [
        set(re.findall(r"checkpoint_global_step_\d+", json.dumps(records)))
        for records in (there, here)
    ]
    assert aliases[1] == aliases[0] == {"checkpoint_global_step_6", "checkpoint_global_step_12"}
    assert "checkpoint.pth" in json.dumps(here)
    assert not list((tmp_path / "here").glob("checkpoint-*"))  # it exists only during the callback


def in_mlflow(tmp_path, monkeypatch, kind):
    """What MLflow's files hold of a run; a database would take seconds to be made."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv(
        "MLFLOW_ASYNC_LOGGING_THREADPOOL_SIZE", "1"
    )  # several threads would write values in any order
    monkeypatch.setenv(
        "MLFLOW_ASYNC_LOGGING_BUFFERING_SECONDS", "1"
    )  # which ends at once with the run; without it a thread polls

    def make(folder):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{folder}/me/runs")
        mlflow.set_tracking_uri(None)
        return kind()

    def read(folder, callback):
        mlflow.flush_async_logging()
        mlflow.end_run()  # DagsHub's leaves it open
        client = mlflow.MlflowClient(f"file://{folder}/me/runs")
        (run,) = client.search_runs(["0"])
        assert run.data.params["per_device_train_batch_size"] == "8"
        rows = {name: client.get_metric_history(run.info.run_id, name) for name in LOGGED}
        return {name: [(row.step, row.value) for row in found] for name, found in rows.items()}

    try:
        return in_both(tmp_path, make, read)
    finally:
        mlflow.end_run()
        mlflow.set_tracking_uri(None)


@shows(NAME, "MLflowCallback", f"{SAME}, in its store")
def test_mlflow_callback(tmp_path, monkeypatch):
    assert same_curves(*in_mlflow(tmp_path, monkeypatch, integrations.MLflowCallback), LOGGED)


@shows(
    NAME,
    "DagsHubCallback",
    f"{SAME}, in MLflow's store; artifacts were not tried",
)
def test_dagshub_callback(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "DAGSHUB_USER_TOKEN", "unused"
    )  # read when it is imported; without one it opens a page to log in
    assert same_curves(*in_mlflow(tmp_path, monkeypatch, integrations.DagsHubCallback), LOGGED)


@shows(NAME, "TrackioCallback", f"{SAME}, in its database")
def test_trackio_callback(tmp_path, monkeypatch):
    pytest.importorskip("trackio.media")
    for name, module in list(
        sys.modules.items()
    ):  # where to is read from the environment when the package is imported
        if name.partition(".")[0] == "trackio":
            for attribute, path in (
                ("TRACKIO_DIR", tmp_path / "trackio"),
                ("MEDIA_DIR", tmp_path / "trackio" / "media"),
            ):
                if hasattr(module, attribute):
                    monkeypatch.setattr(module, attribute, path)

    def rows(project):
        with sqlite3.connect(tmp_path / "trackio" / f"{project}.db") as connection:
            found = [
                json.loads(metrics)
                for (metrics,) in connection.execute("SELECT metrics FROM metrics ORDER BY id")
            ]
        return curves(
            (name, row["train/global_step"], value) for row in found for name, value in row.items()
        )

    for place in ("there", "here"):
        run(place, tmp_path / place, integrations.TrackioCallback(), project=place)
    assert same_curves(rows("there"), rows("here"))


def dvclive_curves(folder, callback):
    metrics = folder / "live" / "plots" / "metrics"
    lines = {path: path.read_text().splitlines()[1:] for path in metrics.rglob("*.tsv")}
    return {
        str(path.relative_to(metrics).with_suffix("")): [
            (int(row.split()[0]), float(row.split()[1])) for row in rows
        ]
        for path, rows in lines.items()
    }


@shows(NAME, "DVCLiveCallback", "the same values in the same order in its files")
@shows(
    "Third parties",
    "dvclive: DVCLiveCallback for transformers",
    "the same values in the same order in its files",
)
@pytest.mark.parametrize("whose", ["transformers.integrations", "dvclive.huggingface"])
def test_dvclive_callback(tmp_path, whose, monkeypatch):
    dvclive = pytest.importorskip("dvclive")
    monkeypatch.chdir(tmp_path)
    kind = pytest.importorskip(whose).DVCLiveCallback

    def make(folder):
        return kind(live=dvclive.Live(dir=str(folder / "live"), save_dvc_exp=False, dvcyaml=None))

    assert same_curves(
        *in_both(tmp_path, make, dvclive_curves), ("loss", "learning_rate", "eval/loss")
    )


@shows(
    "Third parties",
    "dvclive: DVCLiveCallback for Keras",
    "imports TensorFlow with every backend; use DVCLiveHook",
    CANNOT,
)
def test_dvclives_callback_for_keras_needs_tensorflow():
    with pytest.raises(ModuleNotFoundError, match="tensorflow"):
        import dvclive.keras  # noqa: F401


@shows(
    NAME,
    "ClearMLCallback",
    f"{SAME}, in its offline session, which stores no models",
)
def test_clearml_callback(tmp_path, monkeypatch):
    clearml = pytest.importorskip("clearml")
    (tmp_path / "clearml.conf").write_text(
        "sdk {development {report_use_subprocess: false}}"
    )  # at the end it waits for that one twice
    monkeypatch.setenv("CLEARML_CONFIG_FILE", str(tmp_path / "clearml.conf"))
    monkeypatch.setenv("CLEARML_LOG_MODEL", "FALSE")
    clearml.Task.set_offline(True)
    off = {
        "auto_connect_frameworks": False,
        "auto_connect_arg_parser": False,
        "auto_connect_streams": False,
    }
    task = clearml.Task.init("tests", "both", auto_resource_monitoring=False, **off)
    try:
        for place in ("there", "here"):
            run(place, tmp_path / place, integrations.ClearMLCallback())
    finally:
        task.close()
    with zipfile.ZipFile(f"{task.get_offline_mode_folder()}.zip") as session:
        events = [
            event
            for line in session.read("metrics.jsonl").splitlines()
            for event in json.loads(line)
        ]
    rows = [
        (event["metric"], event["variant"], event["iter"], event["value"])
        for event in events
        if "variant" in event
    ]
    there = curves(
        (f"{metric}/{name}", step, value)
        for metric, name, step, value in rows
        if not metric.endswith("_2")
    )
    here = curves(
        (f"{metric.removesuffix('_2')}/{name}", step, value)
        for metric, name, step, value in rows
        if metric.endswith("_2")
    )
    assert same_curves(there, here)


@shows(NAME, "CometCallback", f"{SAME}, in its offline archive")
def test_comet_callback(tmp_path, monkeypatch):
    pytest.importorskip("comet_ml")
    for name in (
        "START_ONLINE",
        "AUTO_LOG_GIT_METADATA",
        "AUTO_LOG_CODE",
        "AUTO_LOG_ENV_DETAILS",
        "AUTO_LOG_ENV_HOST",
        "LOG_ENV_DETAILS",
    ):
        monkeypatch.setenv(f"COMET_{name}", "0")

    def make(folder):
        monkeypatch.setenv("COMET_OFFLINE_DIRECTORY", str(folder))
        return integrations.CometCallback()

    def read(folder, callback):
        (path,) = folder.glob("*.zip")
        with zipfile.ZipFile(path) as archive:
            messages = [json.loads(line) for line in archive.read("messages.json").splitlines()]
        metrics = [
            message["payload"]["metric"] for message in messages if message["type"] == "metric_msg"
        ]
        return curves(
            (metric["metricName"], metric["step"], metric["metricValue"]) for metric in metrics
        )

    assert same_curves(*in_both(tmp_path, make, read, lambda callback: callback._experiment.end()))


@shows(
    NAME,
    "SwanLabCallback",
    f"{SAME}, in its offline run, after `swanlab.init()`",
)
def test_swanlab_callback(tmp_path):
    swanlab = pytest.importorskip("swanlab")
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    settings = swanlab.Settings(
        probe=swanlab.Settings.Probe(requirements=False, monitor=False)
    )  # it would run pip for seconds

    def make(folder):
        swanlab.init(mode="offline", log_dir=str(folder / "swanlog"), settings=settings)
        return integrations.SwanLabCallback()

    def read(folder, callback):
        (path,) = (folder / "swanlog").glob("run-*/*.swanlab")
        reader = DataStoreReader()
        reader.open(path)
        scalars = [
            record.scalar for record in map(Record.FromString, reader) if record.HasField("scalar")
        ]
        return curves((scalar.key, scalar.step, scalar.value.number) for scalar in scalars)

    assert same_curves(*in_both(tmp_path, make, read, lambda callback: swanlab.finish()))
