"""`hookline train` under torchrun: started, failing, restarted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from hookline.checkpoint import CheckpointStore, diff, load_checkpoint

pytestmark = pytest.mark.slow

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
from hookline import HOOKS, BaseHook

@HOOKS.register()
class Trouble(BaseHook):
    def before_train_iter(self, runner):
        kind, iteration = os.environ.get("TROUBLE", "none 0").split()
        if runner.world.rank == 1 and runner.iter + 1 == int(iteration) and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "raise":
                raise ValueError("only here")
"""


def command(folder, options, trouble):
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "trouble.py").write_text(TROUBLE)
    environment = {**os.environ, "TROUBLE": trouble, "OMP_NUM_THREADS": "1"}
    return {"args": [sys.executable, "-m", "hookline", "train", "config.yaml", *options], "cwd": folder, "env": environment}


def train(folder, *options, trouble="none 0"):
    return subprocess.run(**command(folder, options, trouble), capture_output=True, text=True, timeout=300, check=False)


def rows(folder, mode):
    return [row for line in (folder / "log.jsonl").read_text().splitlines() if (row := json.loads(line))["mode"] == mode]


def test_a_killed_worker_is_restarted_and_the_end_is_that_of_a_run_left_alone(tmp_path):
    straight = train(tmp_path, "--nproc", "2", "--work-dir", "straight")
    assert straight.returncode == 0, straight.stderr
    killed = train(tmp_path, "--nproc", "2", "--max-restarts", "1", "--work-dir", "killed", trouble="kill 7")
    assert killed.returncode == 0, killed.stderr
    assert killed.stdout.count("resumed at epoch 1, iteration 4") == 1
    first, second = (load_checkpoint(tmp_path / name / "last.pth") for name in ("straight", "killed"))
    differences = [text for text in diff(first, second) if not text.startswith(("meta", "events", "by_rank"))]
    assert not differences
    assert [row["loss"] for row in rows(tmp_path / "straight", "train")] == [row["loss"] for row in rows(tmp_path / "killed", "train")]
    assert len(CheckpointStore(tmp_path / "killed").entries()) > 1


def test_an_error_of_one_process_comes_first_and_the_other_says_whose_it_was(tmp_path):
    done = train(tmp_path, "--nproc", "2", "--work-dir", "run", trouble="raise 7")
    assert done.returncode == 1
    assert done.stderr.index("ValueError: only here") < done.stderr.index("process 1 failed: ValueError: only here")
    assert "Trouble at before_train_iter" in done.stderr
    assert done.stderr.count("Traceback (most recent call last)") <= 3  # the process's own, and twice in what torchrun says at the end


def test_a_main_process_that_is_stopped_is_named_also_under_torchrun(tmp_path):
    options = ("--nproc", "2", "--work-dir", "run", "strategy={type: ddp, timeout: 4}", "training.epochs=100000")
    told = tmp_path / "told.txt"
    with told.open("w") as output:
        job = subprocess.Popen(**command(tmp_path, options, "none 0"), stdout=output, stderr=output)
    try:
        wait_for(told, "val  epoch 2")
        workers = [worker for launcher in psutil.Process(job.pid).children() for worker in launcher.children()]
        (main,) = [worker for worker in workers if worker.environ().get("RANK") == "0"]
        main.send_signal(signal.SIGSTOP)
        wait_for(told, "hookline: process 0 answered no more")
        main.kill()  # torchrun would have waited for it
        assert job.wait(60) == 1
    finally:
        if job.poll() is None:
            for process in [*psutil.Process(job.pid).children(recursive=True), job]:
                process.kill()


def wait_for(path, text):
    deadline = time.monotonic() + 60
    while text not in path.read_text():
        assert time.monotonic() < deadline, path.read_text()
        time.sleep(0.1)
