"""Logs of a run that an adversary, a power cut or a strange name has touched."""

from __future__ import annotations

import csv
import json
import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.checkpoint.names import MANIFEST
from hookline.engine import BaseHook
from hookline.events.csv import CSVWriter
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.read import read_curves
from hookline.hooks import CheckpointHook, LoggerHook, PeriodicWriterHook, ReportHook
from tests.adversary import damaged_logs
from tests.helpers import make_runner

DEEP = '{"iter": ' + "[" * 100_000 + "]" * 100_000 + "}"
LOGS = ("log.jsonl", "metrics.csv", "hookline.log", "timeline.jsonl")


class Extra(BaseHook):
    """A hook that records a scalar whose name has a line separator in it."""

    def after_train_iter(self, runner: Any) -> None:
        runner.events.put_scalar("a\u2028b\u0085c", float(runner.iter))


def train(folder: Path, *more: BaseHook, **parts: Any) -> None:
    logging.getLogger("hookline").setLevel(logging.INFO)
    hooks = [
        LoggerHook(interval=1),
        PeriodicWriterHook(period=1),
        CheckpointHook(interval=2, by_epoch=False, async_save=False),
        ReportHook(),
        *more,
    ]
    make_runner(folder, *hooks, max_iters=6, **parts).train()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().split("\n")[:-1]]


class Disk:
    """The content of files that a power cut leaves: what was synced last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, on_commit: Callable[[Disk], None]) -> None:
        self.synced: dict[str, str] = {}
        self._sync, self._replace = os.fsync, os.replace
        self._on_commit = on_commit
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "replace", self.replace)

    def fsync(self, descriptor: int) -> None:
        self._sync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_file():
            self.synced[path.name] = path.read_bytes().decode(errors="replace")

    def replace(self, source: Path, target: Path) -> None:
        self._replace(source, target)
        name = Path(source).name
        if name in self.synced:
            self.synced[Path(target).name] = self.synced[name]
        if Path(target).name == MANIFEST:
            self._on_commit(self)


def test_all_logs_are_on_the_disk_when_a_checkpoint_is_committed(tmp_path, monkeypatch):
    found: list[dict[str, int]] = []

    def look(disk: Disk) -> None:
        found.append({name: disk.synced.get(name, "").count("\n") for name in LOGS})

    Disk(monkeypatch, look)
    train(tmp_path)
    steps = [2, 4, 6]
    commits = found[-len(steps) :]
    assert [commit["log.jsonl"] for commit in commits] == steps
    assert [commit["metrics.csv"] for commit in commits] == [step + 1 for step in steps]
    assert all(commit["hookline.log"] >= 1 for commit in commits)
    assert all(commit["timeline.jsonl"] >= 1 for commit in commits)


def test_the_log_that_a_resume_has_cut_is_on_the_disk(tmp_path, monkeypatch):
    train(tmp_path)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"mode": "train", "iter": 99, "epoch": 1}\n')
    disk = Disk(monkeypatch, lambda disk: None)
    train(tmp_path, resume="auto")
    assert [json.loads(line)["iter"] for line in disk.synced["log.jsonl"].split("\n")[:6]] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip


@pytest.fixture
def file_system(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Mount images of disks; an image holds only what has reached the disk."""
    if os.geteuid() or not shutil.which("mkfs.ext4"):
        pytest.skip("only root can mount a disk image")
    mounted: list[Path] = []

    def mount(image: Path) -> Path:
        folder = image.with_suffix(".mounted")
        folder.mkdir()
        result = subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True)
        if result.returncode:
            pytest.skip("this system cannot mount a disk image")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


def test_a_power_cut_after_a_save_takes_no_row_before_it(tmp_path, file_system):
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(16 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    cuts: list[tuple[int, Path]] = []

    class Cut(BaseHook):
        """A hook that copies the disk as a power cut would leave it."""

        def after_save_checkpoint(self, runner: Any) -> None:
            copy = tmp_path / f"cut_{runner.iter}.img"
            shutil.copyfile(image, copy)
            cuts.append((runner.iter, copy))

    train(file_system(image) / "run", Cut())
    assert [step for step, _ in cuts] == [2, 4, 6]
    for step, copy in cuts:
        folder = file_system(copy) / "run"
        assert [row["iter"] for row in rows_of(folder)] == list(range(1, step + 1))
        assert len((folder / "metrics.csv").read_text().splitlines()) == step + 1
        assert (folder / "timeline.jsonl").stat().st_size
        assert (folder / "hookline.log").stat().st_size


def test_rows_with_line_separators_in_a_name_survive_a_resume(tmp_path):
    train(tmp_path, Extra())
    before = (tmp_path / "log.jsonl").read_bytes()
    assert "\u2028".encode() in before
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b'{"mode": "train", "iter": 99, "epoch": 1}\n')
    train(tmp_path, Extra(), resume="auto")
    assert (tmp_path / "log.jsonl").read_bytes() == before


def test_a_name_with_a_newline_does_not_break_the_table(tmp_path):
    path = tmp_path / "metrics.csv"
    for iteration in (1, 2):
        writer = CSVWriter(path)
        writer.write_scalars("train", {"a\r\nb\u2028c": 1.0, "d": 2.0}, iter=iteration, epoch=1)
    lines = path.read_bytes().decode().split("\n")
    assert len(lines) == 4
    assert all(len(next(csv.reader([line]))) == 6 for line in lines[:-1])
    assert "".join(lines).isprintable()


@pytest.mark.parametrize(
    "line", [DEEP, '{"iter": 1' + "0" * 400 + "}", "[]", "\x00\x00", '{"iter": NaN}', '{"iter"']
)
def test_a_hostile_line_is_dropped_and_blocks_no_resume(line, tmp_path):
    writer = JSONLinesWriter(tmp_path / "log.jsonl")
    writer.write_scalars("train", {"loss": 1.0}, iter=1, epoch=1)
    writer.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write(line)
    writer = JSONLinesWriter(tmp_path / "log.jsonl")
    writer.cut_after(1)
    writer.write_scalars("train", {"loss": 1.0}, iter=2, epoch=1)
    writer.close()
    assert [row["iter"] for row in rows_of(tmp_path)] == [1, 2]


def test_curves_are_read_past_hostile_lines(tmp_path):
    rows = ['{"mode": "train", "iter": 1, "epoch": 1, "loss": 1.0, "big": 1' + "0" * 400 + "}"]
    rows += [DEEP, '{"mode": "train", "iter": 2, "epoch": 1, "a\u2028b": 2.0}', ""]
    (tmp_path / "log.jsonl").write_text("\n".join(rows))
    assert read_curves(tmp_path) == {"train/loss": [(1, 1.0)], "train/a\u2028b": [(2, 2.0)]}


@pytest.mark.parametrize("seed", range(40))
def test_a_run_with_damaged_files_is_resumed_and_shown(seed):
    damaged_logs.run_case(seed)
