"""Trackio's database, read back with plain SQL."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.events.parts import BreakAt, PutEverything, image_run

pytest.importorskip("trackio")


@pytest.fixture
def database(trackio_database):
    return trackio_database


def rows(database):
    with sqlite3.connect(database) as connection:
        found = connection.execute(
            "SELECT run_name, step, metrics FROM metrics ORDER BY id"
        ).fetchall()
    return [(name, step, json.loads(metrics)) for name, step, metrics in found]


def test_scalars_and_other_content_are_in_the_database(tmp_path, database):
    runner = image_run(
        tmp_path / "run",
        {"type": "TrackioHook", "project": "digits", "interval": 5, "log_model": True},
        PutEverything(),
    )
    found = rows(database)
    assert {name for name, _, _ in found} == {f"run-{runner.hook('TrackioHook').run_id[:8]}"}
    assert [step for _, step, metrics in found if "train/loss" in metrics] == [5, 10, 15, 20]
    assert [metrics["val/accuracy"] for _, _, metrics in found if "val/accuracy" in metrics][
        -1
    ] == pytest.approx(runner.metrics["accuracy"])
    names = {name for _, _, metrics in found for name in metrics}
    assert {"pictures/ramp", "numbers", "text/note", "text/model"} <= names


def test_a_resumed_run_continues_in_the_same_one(tmp_path, database):
    hook = {"type": "TrackioHook", "project": "digits", "run_name": "mine", "interval": 5}
    with pytest.raises(RuntimeError):
        image_run(tmp_path / "run", hook, BreakAt(12))
    image_run(tmp_path / "run", hook, resume="auto")
    found = rows(database)
    assert len({name for name, _, _ in found}) == 1
    assert [step for _, step, metrics in found if "train/loss" in metrics] == [5, 10, 15, 20]


def test_a_run_that_broke_off_before_its_first_checkpoint_continues_in_the_same_one(
    tmp_path, database
):
    hook = {"type": "TrackioHook", "project": "digits", "interval": 1}
    with pytest.raises(RuntimeError):
        image_run(tmp_path / "run", hook, BreakAt(3))
    image_run(tmp_path / "run", hook, resume="auto")
    assert len({name for name, _, _ in rows(database)}) == 1
