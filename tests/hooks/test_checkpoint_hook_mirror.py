"""Runs with a mirror in object storage: kills, empty disks and faults."""

from __future__ import annotations

import functools
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

from hookline import Runner, drive
from hookline.checkpoint import load_checkpoint
from hookline.checkpoint.mirror import Limits, Mirror
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, LambdaHook
from hookline.remote import RemoteDirectory
from tests.helpers import batches
from tests.object_storage import FAULTS

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


@pytest.mark.parametrize("url", ["https://host/run", "s3://key:secret@runs/digits"])
def test_a_mirror_must_be_a_url_that_can_be_written_to(url):
    with pytest.raises(ConfigError) as caught:
        CheckpointHook(mirror=url)
    assert caught.value.parameter == "mirror"
    assert "secret" not in str(caught.value)


def test_an_out_dir_must_be_local():
    with pytest.raises(ConfigError) as caught:
        CheckpointHook(out_dir=URL)
    assert caught.value.parameter == "out_dir"


def test_a_work_directory_that_is_a_url_continues_on_an_empty_disk(tmp_path, proxy, monkeypatch):
    train(tmp_path / "straight", "memory://straight-url")
    machines = [tmp_path / "machine-1", tmp_path / "machine-2"]
    for folder, length in zip(machines, (6, 12), strict=True):
        folder.mkdir()
        monkeypatch.chdir(folder)
        runner = train(URL, None, max_iters=length)
        assert runner.work_url == URL
        assert runner.work_dir == Path("runs/s3/runs/digits")
    last = machines[1] / "runs/s3/runs/digits/last.pth"
    assert equal(weights(tmp_path / "straight/last.pth"), weights(last))
    assert read_manifest(RemoteDirectory(URL)).newest().step == 12


def test_a_work_directory_that_is_a_url_needs_a_hook_that_copies_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        Runner(nn.Linear(2, 2), work_dir="memory://run", drop_hooks=["CheckpointHook"])
    assert caught.value.parameter == "work_dir"
    with pytest.raises(ConfigError) as caught:
        drive([], nn.Linear(2, 2), work_dir="memory://run")
    assert caught.value.parameter == "work_dir"


def test_a_work_directory_and_a_mirror_must_not_be_different_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hook = CheckpointHook(mirror="memory://other")
    with pytest.raises(ConfigError) as caught:
        Runner(nn.Linear(2, 2), work_dir="memory://run", hooks=[hook])
    assert caught.value.parameter == "mirror"


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_other_storages_than_s3_continue_a_run_on_an_empty_disk(tmp_path, scheme):
    url = f"{scheme}://{tmp_path}/store"
    train(tmp_path / "straight", f"memory://{tmp_path.name}-straight")
    train(tmp_path / "first", url, max_iters=6)
    shutil.rmtree(tmp_path / "first")
    train(tmp_path / "second", url)
    assert equal(weights(tmp_path / "straight/last.pth"), weights(tmp_path / "second/last.pth"))
    remote = RemoteDirectory(url)
    assert read_manifest(remote).keys() == set(remote.list("files"))


def test_the_config_of_the_resumed_process_stays(tmp_path):
    url = f"file://{tmp_path}/store"
    for name, length in (("first", 6), ("second", 12)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(name)
        train(tmp_path / name, url, max_iters=length)
    assert (tmp_path / "second/config.yaml").read_text() == "second"


def test_no_file_of_a_run_has_credentials(tmp_path, proxy, caplog):
    proxy.rule = lambda method, path: "deny" if method == "PUT" and len(proxy.seen) < 9 else None
    config = {"storage": {"url": "s3://key:very-secret-value@runs/x"}}
    train(tmp_path / "run", config=config)
    assert proxy.faults
    remote = RemoteDirectory(URL)
    contents = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    for key in remote.list(""):
        remote.download(key, contents.append)
    contents.append(caplog.text.encode())
    for secret in (b"very-secret-value", b"AKIATESTTESTTEST"):
        assert not any(secret in content for content in contents)


def test_the_training_thread_never_waits_for_the_storage(tmp_path, monkeypatch):
    callers = []

    class Noting(RemoteDirectory):
        def _requests(self, action, key):
            callers.append(threading.current_thread().name)
            return super()._requests(action, key)

    monkeypatch.setattr("hookline.checkpoint.queue.RemoteDirectory", Noting)
    train(tmp_path / "run", f"file://{tmp_path}/store", resume=None)
    assert set(callers) == {"hookline-mirror"}


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


class FailOnce:
    """A rule by which the first requests of each method for a path fail once."""

    def __init__(self, fault: str, count: int = 12) -> None:
        self.fault = fault
        self.left = count
        self.seen: set[tuple[str, str]] = set()

    def __call__(self, method: str, path: str) -> str | None:
        request = method, path.partition("?")[0]
        if request in self.seen or not self.left:
            return None
        self.seen.add(request)
        self.left -= 1
        return self.fault


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_storage_never_stop_training(tmp_path, proxy, fault, monkeypatch):
    monkeypatch.setattr("s3fs.S3FileSystem.read_timeout", 0.3)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    # tests/checkpoint/test_mirror.py checks the delays, which add up to a minute.
    limits = Limits(first_delay_s=0.01, max_delay_s=0.01, final_attempts=1000)
    monkeypatch.setattr(
        "hookline.checkpoint.queue.Mirror", functools.partial(Mirror, limits=limits)
    )
    proxy.rule = FailOnce(fault)
    train(tmp_path / "straight", "memory://straight-faults")
    train(tmp_path / "run", max_iters=8)
    faults = proxy.faults
    assert faults >= 4
    shutil.rmtree(tmp_path / "run")
    proxy.rule = FailOnce(fault)
    train(tmp_path / "other")
    assert proxy.faults >= faults + 4
    proxy.rule = lambda method, path: None
    assert equal(weights(tmp_path / "straight/last.pth"), weights(tmp_path / "other/last.pth"))
    assert rows(tmp_path / "straight") == rows(tmp_path / "other")
    remote = RemoteDirectory(URL)
    assert read_manifest(remote).entries[-1].step == 12
    assert read_manifest(remote).keys() <= set(remote.list("files"))


def test_the_report_names_the_checkpoints_that_are_only_local(tmp_path, proxy, monkeypatch):
    limits = Limits(first_delay_s=0.01, final_attempts=2)
    monkeypatch.setattr(
        "hookline.checkpoint.queue.Mirror", functools.partial(Mirror, limits=limits)
    )
    proxy.rule = lambda method, path: "deny"
    train(tmp_path / "run", resume=None)
    assert only_local(tmp_path / "run") == ["iter_10.pth", "iter_12.pth"]
    proxy.rule = lambda method, path: None
    train(tmp_path / "run", max_iters=14)
    assert only_local(tmp_path / "run") == []


def only_local(folder) -> list[str]:
    page = (folder / "report.html").read_text()
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    return json.loads(data[1])["runs"][0]["mirror"]["only_local"]


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
