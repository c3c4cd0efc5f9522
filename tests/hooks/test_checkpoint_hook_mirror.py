"""Runs with a mirror in object storage: kills, empty disks and faults."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import load_checkpoint
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, LambdaHook
from hookline.remote import RemoteDirectory
from tests.helpers import batches

URL = "s3://runs/digits"
ROOT = Path(__file__).parents[2]


def train(folder, mirror: str = URL, *hooks, **parts) -> Runner:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Linear(8, 3))
    save = CheckpointHook(by_epoch=False, interval=2, max_keep_ckpts=2, mirror=mirror)
    parts = {"max_iters": 12, "train_loader": batches(4), "resume": "auto", "seed": 3, **parts}
    runner = Runner(
        model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        work_dir=folder,
        hooks=[save, *hooks],
        **parts,
    )
    return runner.train()


def weights(path) -> dict[str, torch.Tensor]:
    return load_checkpoint(path)["state_dict"]


def equal(first, second) -> bool:
    return all(torch.equal(first[key], second[key]) for key in first)


def test_a_mirror_must_be_a_url():
    with pytest.raises(ConfigError) as caught:
        CheckpointHook(mirror="/mnt/run")
    assert caught.value.parameter == "mirror"


def test_a_work_directory_must_be_local(tmp_path):
    with pytest.raises(ConfigError) as caught:
        train(URL, None)
    assert caught.value.parameter == "work_dir"


def test_the_mirror_of_a_finished_run_is_its_work_directory(tmp_path, proxy):
    train(tmp_path / "run")
    manifest = read_manifest(RemoteDirectory(URL))
    names = {name for entry in manifest.entries for name in entry.names}
    assert names == {path.name for path in (tmp_path / "run").glob("*.pth")}
    assert {"log.jsonl", "hookline.log", "report.html"} <= {part.name for part in manifest.files}


def test_a_finished_run_on_an_empty_disk_is_finished(tmp_path, proxy):
    train(tmp_path / "run")
    runner = train(tmp_path / "other")
    assert runner.iter == 12
    assert equal(weights(tmp_path / "run/last.pth"), weights(tmp_path / "other/last.pth"))


def test_an_interrupted_run_continues_on_an_empty_disk(tmp_path, proxy):
    train(tmp_path / "straight", "memory://straight")

    def stop(runner):
        if runner.iter == 5:
            runner.request_stop("pre-empted")

    train(tmp_path / "first", URL, LambdaHook(after_train_iter=stop))
    shutil.rmtree(tmp_path / "first")
    train(tmp_path / "second")
    assert equal(weights(tmp_path / "straight/last.pth"), weights(tmp_path / "second/last.pth"))
    straight, second = (rows(tmp_path / name) for name in ("straight", "second"))
    assert straight == second


def rows(folder) -> list[dict]:
    """Return the rows of the log without times and speeds."""
    found = []
    for line in (folder / "log.jsonl").read_text().splitlines():
        row = json.loads(line)
        found.append({key: row[key] for key in ("mode", "iter", "epoch", "loss") if key in row})
    return found


def test_an_evaluation_leaves_the_mirror_alone(tmp_path, proxy):
    runner = train(tmp_path / "run", val_loader=batches(1))
    proxy.seen.clear()
    runner.validate()
    assert proxy.seen == []


def test_load_from_and_resume_take_urls(tmp_path, proxy):
    train(tmp_path / "run")
    loaded = train(tmp_path / "a", None, resume=None, load_from=f"{URL}/last.pth", max_iters=1)
    assert loaded.iter == 1
    resumed = train(tmp_path / "b", None, resume=f"{URL}/last.pth", max_iters=14)
    assert resumed.iter == 14


@pytest.mark.parametrize("fault", ["503", "deny", "hang", "cut upload"])
def test_faults_of_the_storage_never_stop_training(tmp_path, proxy, fault, monkeypatch):
    monkeypatch.setattr("s3fs.S3FileSystem.read_timeout", 0.3)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    left = [6]

    def rule(method: str, path: str) -> str | None:
        if method == "GET" or not left[0]:
            return None
        left[0] -= 1
        return fault

    proxy.rule = rule
    train(tmp_path / "run", resume=None)
    assert proxy.faults == 6
    proxy.rule = lambda method, path: None
    shutil.rmtree(tmp_path / "run")
    runner = train(tmp_path / "other", max_iters=14)
    assert runner.iter == 14
    entries = read_manifest(RemoteDirectory(URL)).entries
    assert entries[-1].step == 14


SCRIPT = """
import sys
from tests.hooks.test_checkpoint_hook_mirror import train
train(sys.argv[1])
"""


@pytest.mark.parametrize(("kill_at", "count"), [(r"PUT .*\.pth", 2), ("PUT .*/manifests/", 2)])
def test_a_run_that_was_killed_during_an_upload_continues_on_an_empty_disk(
    tmp_path,
    proxy,
    kill_at,
    count,
):
    process: list[subprocess.Popen] = []
    killed = threading.Event()
    seen = []

    def kill(method: str, path: str) -> str | None:
        if killed.is_set() or re.match(kill_at, f"{method} {path}") is None:
            return None
        seen.append(path)
        if len(seen) < count or not process:
            return None
        os.kill(process[0].pid, signal.SIGKILL)
        process[0].wait()
        killed.set()
        return "drop"

    proxy.rule = kill
    process.append(
        subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "first")], cwd=ROOT)
    )
    assert process[0].wait() == -signal.SIGKILL
    assert killed.wait(60)
    shutil.rmtree(tmp_path / "first")
    train(tmp_path / "second")
    train(tmp_path / "straight", "memory://straight-kill")
    assert equal(weights(tmp_path / "straight/last.pth"), weights(tmp_path / "second/last.pth"))
    assert rows(tmp_path / "straight") == rows(tmp_path / "second")
    remote = RemoteDirectory(URL)
    assert read_manifest(remote).keys() == set(remote.list("files"))
