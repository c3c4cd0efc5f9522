"""Every recorded value arrives once, at its step, in every writer, whatever interrupts the run."""

from __future__ import annotations

import csv
import dataclasses
import json
import logging
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from tests import processes
from tests.events import killed_run
from tests.events.recordings import NAMES, Found, Plan, Recording, carry_out, plans
from tests.waiting import LIMIT_S

ROOT = Path(__file__).parents[2]
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
NO_SHRINKING = (Phase.explicit, Phase.generate)


def test_every_value_is_in_the_log_the_table_and_on_the_console(caplog):
    caplog.set_level("INFO", "hookline")

    @settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
    @given(plan=plans())
    def check(plan):
        caplog.clear()
        with tempfile.TemporaryDirectory() as folder:
            hooks = [
                {"type": "LoggerHook", "interval": plan.interval},
                {"type": "PeriodicWriterHook", "writers": ["csv"], "period": plan.interval},
            ]
            carry_out(plan, Path(folder), *hooks)
            assert in_log(Path(folder)) == plan.expected()
            assert in_table(Path(folder)) == plan.expected()
        if not plan.crashes:  # else lines of repeated iterations are printed again
            assert on_console(caplog.records) == plan.expected()

    check()


def in_log(folder: Path) -> Found:
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return sorted(
        (name, row.get("step", row["iter"]), row[name])
        for row in rows
        for name in NAMES
        if name in row
    )


def in_table(folder: Path) -> Found:
    with (folder / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return sorted(
        (name, int(row.get("step") or row["iter"]), float(row[name]))
        for row in rows
        for name in NAMES
        if row.get(name)
    )


def on_console(records: list[logging.LogRecord]) -> Found:
    found = []
    for record in records:
        line = record.getMessage()
        where = re.match(r"train  epoch (\d+)  iter (\d+)(?:  step (\d+))?", line)
        for name in NAMES:
            value = re.search(rf"  {name} +([\d.]+)", line)
            if where and value:
                found.append((name, int(where[3] or where[2]), float(value[1])))
    return sorted(found)


TRACKED = Plan(
    recordings=[
        Recording("after_train_iter", 1, "rare", None, False),
        Recording("after_train_iter", 7, "rare", None, True),
        Recording("before_epoch", 8, "rare", None, False),
        Recording("after_epoch", 3, "group/deep", None, False),
        Recording("after_epoch", 8, "group/deep", None, False),
        Recording("after_train_iter", 2, "lively", 30, False),  # before a save, beyond the run
        Recording("after_train_iter", 5, "lively", 31, True),  # after it: repeated
        Recording("after_train_iter", 5, "lively", 2, False),
        Recording("after_train_iter", 9, "lively", 3, False),
        Recording("after_epoch", 10, "lively", 1, False),
    ],
    epochs=2,
    epoch_length=5,
    interval=4,
    save_every=3,
    ends=[6],
    crashes=False,
    priority=0,
    order="nested",
)


# Trackers take long to open: each runs few plans, the last of them with a crash.
CRASHED = dataclasses.replace(TRACKED, crashes=True, ends=[5, 7])


@settings(max_examples=8, deadline=None, phases=NO_SHRINKING, suppress_health_check=QUIET)
@given(plan=plans())
@example(plan=CRASHED)
@example(plan=TRACKED)
def test_every_value_is_in_tensorboard(plan):
    with tempfile.TemporaryDirectory() as folder:
        carry_out(plan, Path(folder), {"type": "TensorBoardHook", "interval": plan.interval})
        assert in_tensorboard(Path(folder)) == plan.expected()


def in_tensorboard(folder: Path) -> Found:
    # Files of the same second are in the order of their numbers: 9 comes before 10.
    files = sorted((folder / "tensorboard").glob("events.*"), key=lambda path: int(path.suffix[1:]))
    for index, path in enumerate(files):
        path.rename(path.with_name(f"events.out.tfevents.{index:04d}"))
    return of_plan(scalars_in_tensorboard(folder))


def scalars_in_tensorboard(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder / "tensorboard"), {"scalars": 0}).Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


OPENED_SLOWLY = settings(
    max_examples=2, deadline=None, phases=NO_SHRINKING, suppress_health_check=QUIET
)


@OPENED_SLOWLY
@given(plan=plans())
@example(plan=CRASHED)
@example(plan=TRACKED)
def test_every_value_is_in_dvclive(plan):
    pytest.importorskip("dvclive")
    with tempfile.TemporaryDirectory() as folder:
        carry_out(plan, Path(folder), {"type": "DVCLiveHook", "interval": plan.interval})
        found = []
        for name in NAMES:
            tag = name if "/" in name else f"train/{name}"
            path = Path(folder, f"dvclive/plots/metrics/{tag}.tsv")
            if not path.exists():
                continue
            with path.open(newline="") as file:
                for row in csv.DictReader(file, delimiter="\t"):
                    found.append((name, int(row["step"]), float(row[tag.rpartition("/")[2]])))
    assert sorted(found) == plan.expected()


@OPENED_SLOWLY
@given(plan=plans())
@example(plan=CRASHED)
@example(plan=TRACKED)
def test_every_value_is_in_trackio(trackio_database, plan):
    from tests.hooks.test_trackio_hook import rows

    with tempfile.TemporaryDirectory() as folder:
        hook = {"type": "TrackioHook", "project": "digits", "interval": plan.interval}
        carry_out(plan, Path(folder), hook)
        run = Path(folder).name
    curves: dict[str, list[tuple[int, float]]] = {}
    for name, step, metrics in rows(trackio_database):
        if name.startswith(run):
            for tag, value in metrics.items():
                curves.setdefault(tag, []).append((step, value))
    assert of_plan(curves) == plan.expected()
    assert_once(curves, plan)


@pytest.mark.slow
@OPENED_SLOWLY
@given(plan=plans())
@example(plan=CRASHED)
@example(plan=TRACKED)
def test_every_value_is_in_an_offline_run_of_wandb(wandb_environment, plan):
    from tests.hooks.test_wandb_hook import history, inspect

    curves: dict[str, list[tuple[int, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        carry_out(
            plan, Path(folder), {"type": "WandbHook", "project": "p", "interval": plan.interval}
        )
        for part in sorted(Path(folder, "wandb").glob("offline-run-*")):
            for tag, points in history(inspect(part)).items():
                curves.setdefault(tag, []).extend(points)
    assert of_plan(curves) == plan.expected()
    assert_once(curves, plan)


@pytest.mark.slow
@OPENED_SLOWLY
@given(plan=plans())
@example(plan=CRASHED)
@example(plan=TRACKED)
def test_every_value_is_on_an_mlflow_server(mlflow_server, plan):
    name = f"every value {uuid.uuid4()}"
    hook = {
        "type": "MLflowHook",
        "tracking_uri": mlflow_server.uri,
        "interval": plan.interval,
        "exp_name": name,
    }
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("hookline.events.delivery.PATIENCE", LIMIT_S)
        carry_out(plan, Path(folder), hook)
    curves = scalars_on_server(mlflow_server, name)
    assert of_plan(curves) == plan.expected()
    assert_once(curves, plan)


def scalars_on_server(server, experiment_name: str) -> dict[str, list[tuple[int, float]]]:
    client = server.client()
    experiment = client.get_experiment_by_name(experiment_name)
    (run,) = client.search_runs([experiment.experiment_id])
    curves = {}
    for tag in run.data.metrics:
        history = client.get_metric_history(run.info.run_id, tag)
        curves[tag] = [(point.step, point.value) for point in history]
    return curves


def test_every_value_is_in_tensorboard_after_a_kill(tmp_path):
    pytest.importorskip("tensorboard")
    kill(start(tmp_path, "tensorboard", wait_at=9))
    finish(start(tmp_path, "tensorboard"))
    curves = scalars_in_tensorboard(tmp_path)
    assert_killed_run(curves)


@pytest.mark.slow
def test_every_value_is_on_an_mlflow_server_after_kills(mlflow_server, tmp_path):
    folder = tmp_path / f"killed {uuid.uuid4()}"
    folder.mkdir()
    uri = mlflow_server.uri
    kill(start(folder, "mlflow", uri, wait_at=5))
    dies_in_a_delivery = start(folder, "mlflow", uri, deadly_step=108)
    assert dies_in_a_delivery.wait(LIMIT_S) < 0
    finish(start(folder, "mlflow", uri))
    assert_killed_run(scalars_on_server(mlflow_server, folder.name))


def start(
    folder: Path, kind: str, uri: str = "", wait_at: int = 0, deadly_step: int = 0
) -> subprocess.Popen[str]:
    """Start a process that trains."""
    command = [sys.executable, "-m", "tests.events.killed_run", str(folder), kind, uri]
    return processes.start(
        [*command, str(wait_at), str(deadly_step)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process when it waits for that."""
    assert process.stdout is not None
    assert "waiting\n" in iter(process.stdout.readline, "")
    process.kill()
    process.communicate(timeout=LIMIT_S)


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for a process that must succeed."""
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0


def assert_killed_run(curves: dict[str, list[tuple[int, float]]]) -> None:
    iterations = range(1, killed_run.ITERATIONS + 1)
    assert sorted(curves["train/own"]) == [(now, now + 0.25) for now in iterations]
    assert sorted(curves["train/ahead"]) == [(100 + now, now + 0.5) for now in iterations]
    assert [step for step, _ in sorted(curves["train/loss"])] == [2, 4, 6, 8, 10, 12]


def assert_once(curves: dict[str, list[tuple[int, float]]], plan: Plan) -> None:
    """Check that the means of each interval arrived once."""
    steps = sorted(step for step, _ in curves["train/loss"])
    interrupted = [] if plan.crashes else plan.ends
    due = {*range(plan.interval, plan.length() + 1, plan.interval), *interrupted, plan.length()}
    assert steps == sorted(due)


def of_plan(curves: dict[str, list[tuple[int, float]]]) -> Found:
    found = []
    for name in NAMES:
        tag = name if "/" in name else f"train/{name}"
        found += [(name, step, value) for step, value in curves.get(tag, [])]
    return sorted(found)
