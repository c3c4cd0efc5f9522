"""Kill random workers of a distributed job, and compare its end with an uninterrupted job.

    python scripts/kill_workers.py [--kills 30] [--seed 0] [--epochs 150]

The job has two processes under `hookline train --nproc 2 --max-restarts …`, with dropout, shuffling
and averaged weights; torchrun restarts it. Exit code 1 if the job fails, ends differently, or
finishes before all kills are done.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from hookline.checkpoint import diff, load_checkpoint

CONFIG = """
seed: 3
model: {type: cnn, dropout: 0.3}
dataset: {type: digits}
loader: {batch_size: 32}
optimizer: {type: AdamW, lr: 0.001}
training: {epochs: EPOCHS}
hooks:
  - {type: LoggerHook, interval: 5}
  - {type: CheckpointHook, by_epoch: false, interval: 7, max_keep_ckpts: 2}
  - {type: EMAHook, momentum: 0.99}
"""
NOT_COMPARED = ("meta", "events", "by_rank")  # parts that differ between any two runs


def start(folder: Path, name: str, restarts: int) -> subprocess.Popen[bytes]:
    """Start the job in a folder; its output is in NAME.txt."""
    command = [sys.executable, "-m", "hookline", "train", "config.yaml", "--work-dir", name]
    command += ["--nproc", "2", "--max-restarts", str(restarts)]
    log = open(folder / f"{name}.txt", "wb")  # noqa: SIM115  # the job keeps it open
    return subprocess.Popen(
        command, cwd=folder, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def workers(job: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the processes that train: children of torchrun that have a rank."""
    found = []
    try:
        for launcher in psutil.Process(job.pid).children():
            for worker in launcher.children():
                if "RANK" in worker.environ():
                    found.append(worker)
    except psutil.Error:  # one of them has just ended
        return []
    return found


class Killer(threading.Thread):
    """A thread that kills one worker after another, at random moments."""

    def __init__(self, job: subprocess.Popen[bytes], kills: int, seed: int, log: Path) -> None:
        super().__init__(daemon=True)
        self.job = job
        self.left = kills
        self.random = random.Random(seed)
        self.log = log
        self.killed: list[int] = []

    def run(self) -> None:
        seen: set[int] = set()
        while self.left and self.job.poll() is None:
            fresh = [process for process in workers(self.job) if process.pid not in seen]
            if len(fresh) < 2:
                time.sleep(0.05)
                continue
            seen |= {process.pid for process in fresh}
            if self.random.random() < 0.9:  # one in ten is killed before it trains
                self._wait_for_progress()
            time.sleep(self.random.uniform(0.0, 2.5))
            victim = self.random.choice(fresh)
            if victim.is_running() and self.job.poll() is None:
                victim.kill()
                self.left -= 1
                self.killed.append(victim.pid)
                print(f"kill {len(self.killed)}", flush=True)

    def _wait_for_progress(self) -> None:
        size = self._size()
        deadline = time.monotonic() + 60
        while self._size() == size and time.monotonic() < deadline and self.job.poll() is None:
            time.sleep(0.05)

    def _size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=150)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        (folder / "config.yaml").write_text(CONFIG.replace("EPOCHS", str(arguments.epochs)))
        alone = start(folder, "alone", 0)
        if alone.wait() != 0:
            print((folder / "alone.txt").read_text()[-3000:])
            return 1
        job = start(folder, "killed", arguments.kills + 5)
        killer = Killer(job, arguments.kills, arguments.seed, folder / "killed" / "log.jsonl")
        killer.start()
        code = job.wait()
        print(f"{len(killer.killed)} kills, exit code {code}")
        if code != 0:
            print((folder / "killed.txt").read_text()[-3000:])
            return 1
        if killer.left:
            missed = f"{killer.left} of {arguments.kills} kills"
            print(f"the job finished before {missed}; increase --epochs")
            return 1
        first = load_checkpoint(folder / "alone" / "last.pth")
        second = load_checkpoint(folder / "killed" / "last.pth")
        differences = [text for text in diff(first, second) if not text.startswith(NOT_COMPARED)]
        same = "bit-identical: weights, average, optimizer, random numbers, position, hooks"
        print("\n".join(differences) or same)
        return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
