"""Links and other things under the names of files that a run writes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from hookline.errors import HooklineError
from hookline.hooks import (
    CheckpointHook,
    LoggerHook,
    PeriodicWriterHook,
    ReportHook,
    RunTraceHook,
    TimeTrackingHook,
)
from tests.helpers import make_runner

# Files that are appended to: a link under their name is an error before training.
APPENDED = ("log.jsonl", "hookline.log", "metrics.csv", "timeline.jsonl", "time_tracking.log")
# Files that are replaced: the link is replaced.
REPLACED = ("hook_costs.json", "report.html", ".log.jsonl.partial")


def train(folder: Path, max_epochs: int = 1, **parts: Any) -> None:
    hooks = [
        LoggerHook(interval=1),
        PeriodicWriterHook(period=1),
        CheckpointHook(),
        ReportHook(),
        RunTraceHook(),
        TimeTrackingHook(),
    ]
    make_runner(folder, *hooks, max_epochs=max_epochs, **parts).train()


@pytest.mark.parametrize("name", APPENDED)
def test_a_link_is_not_followed_and_refused(name, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / name).symlink_to(victim)
    with pytest.raises(HooklineError) as caught:
        train(folder, resume="auto")
    assert caught.value.file == str(folder / name)
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("name", REPLACED)
def test_a_link_is_replaced_and_not_followed(name, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    folder = tmp_path / "run"
    train(folder)
    with (folder / "log.jsonl").open("a") as file:
        file.write('{"mode": "train", "iter": 99, "epoch": 1}\n')
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(victim)
    train(folder, max_epochs=2, resume="auto")
    assert victim.read_text() == "precious\n"
    assert not (folder / name).is_symlink()


def test_a_pipe_in_place_of_a_log_is_refused_and_blocks_nothing(tmp_path):
    os.mkfifo(tmp_path / "log.jsonl")
    with pytest.raises(HooklineError) as caught:
        train(tmp_path)
    assert caught.value.file == str(tmp_path / "log.jsonl")


def test_other_users_cannot_read_the_files_of_a_run(tmp_path):
    train(tmp_path)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.iterdir()
        if path.is_file()
    }
    assert set(APPENDED) <= set(modes)
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o007} == {}
