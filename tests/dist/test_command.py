"""`hookline train` under torchrun: started, failing, restarted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hookline.checkpoint import CheckpointStore, diff, load_checkpoint
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

CONFIG = """
seed: 3
model: {type: mlp}
dataset: {type: digits}
loader: {batch_size: 64}
optimizer: {type: SGD, lr: 0.1}
training: {epochs: 2}
custom_imports: [trouble]
hooks:
  - {type: LoggerHook, interval: 5}
  - {type: CheckpointHook, by_epoch: false, interval: 4}
  - {type: Trouble}
"""
TROUBLE = """
import os, signal
from pathlib import Path
from hookline import HOOKS, BaseHook
from tests.dist.gate import gate_watchdogs

KIND, ITERATION = os.environ["TROUBLE"].split()
if KIND == "stop":
    gate_watchdogs(Path("gate"), patience=None)

@HOOKS.register()
class Trouble(BaseHook):
    def before_train_iter(self, runner):
        first_start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if runner.world.rank == 1 and runner.iter + 1 == int(ITERATION) and first_start:
            if KIND == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if KIND == "raise":
                raise ValueError("only here")
"""


def command(folder, options, trouble):
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "trouble.py").write_text(TROUBLE)
    environment = {"TROUBLE": trouble, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return {
        "args": [sys.executable, "-m", "hookline", "train", "config.yaml", *options],
        "cwd": folder,
        "env": {**os.environ, **environment},
    }


def train(folder, *options, trouble="none 0"):
    return subprocess.run(
        **command(folder, options, trouble),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def rows(folder, mode):
    return [
        row
        for line in (folder / "log.jsonl").read_text().splitlines()
        if (row := json.loads(line))["mode"] == mode
    ]


def test_a_killed_worker_is_restarted_and_the_end_is_that_of_a_run_left_alone(tmp_path):
    straight = train(tmp_path, "--nproc", "2", "--work-dir", "straight")
    assert straight.returncode == 0, straight.stderr
    killed = train(
        tmp_path, "--nproc", "2", "--max-restarts", "1", "--work-dir", "killed", trouble="kill 7"
    )
    assert killed.returncode == 0, killed.stderr
    assert killed.stdout.count("resumed at epoch 1, iteration 4") == 1
    first, second = (
        load_checkpoint(tmp_path / name / "last.pth") for name in ("straight", "killed")
    )
    differences = [
        text for text in diff(first, second) if not text.startswith(("meta", "events", "by_rank"))
    ]
    assert not differences
    assert [row["loss"] for row in rows(tmp_path / "straight", "train")] == [
        row["loss"] for row in rows(tmp_path / "killed", "train")
    ]
    assert len(CheckpointStore(tmp_path / "killed").entries()) > 1


def test_an_error_of_one_rank_comes_first_and_the_other_names_it(tmp_path):
    done = train(tmp_path, "--nproc", "2", "--work-dir", "run", trouble="raise 7")
    assert done.returncode == 1
    own, peer = "ValueError: only here", "rank 1 failed: ValueError: only here"
    assert done.stderr.index(own) < done.stderr.index(peer)
    assert "Trouble at before_train_iter" in done.stderr
    # One of the rank itself, and two in torchrun's summary.
    assert done.stderr.count("Traceback (most recent call last)") <= 3


def test_under_torchrun_a_stopped_main_rank_is_named_and_ends_the_job(tmp_path):
    options = ("--nproc", "2", "--work-dir", "run", "training.epochs=100000")
    options += ("strategy={type: ddp, timeout: 4}",)
    printed = tmp_path / "printed.txt"
    with printed.open("w") as output:
        job = subprocess.Popen(**command(tmp_path, options, "stop 0"), stdout=output, stderr=output)
    try:
        wait_for(printed, "val  epoch 2")
        (launcher,) = psutil.Process(job.pid).children()
        (main,) = [worker for worker in launcher.children() if worker.environ().get("RANK") == "0"]
        main.send_signal(signal.SIGSTOP)
        (tmp_path / "gate").touch()
        wait_for(printed, "hookline: rank 0 stopped responding")
        assert job.wait(LIMIT_S) == 1
    finally:
        if job.poll() is None:
            for process in [*psutil.Process(job.pid).children(recursive=True), job]:
                process.kill()


def wait_for(path, text):
    wait_until(lambda: text in path.read_text(), f"{text!r} in the output", path.read_text)
