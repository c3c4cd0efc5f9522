"""The script that kills workers: it must find them, or it shows nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import psutil

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_workers.py"
# The command starts a launcher, which starts two that have a rank and a helper that has none, as torchrun may.
LAUNCHER = """
import os, subprocess, sys
sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
for rank in ("0", "1", None):
    subprocess.Popen(sleep, env={**os.environ, **({"RANK": rank} if rank else {})})
print("started", flush=True)
"""
COMMAND = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LAUNCHER + 'import time; time.sleep(60)'!r}])"


def test_the_workers_are_found_below_the_launcher_and_killed():
    spec = importlib.util.spec_from_file_location("kill_workers", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    job = subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline() == "started\n"
        assert sorted(worker.environ()["RANK"] for worker in script.workers(job)) == ["0", "1"]
        killer = script.Killer(job, kills=1, seed=1, log=Path("no log"))
        killer._wait_for_progress = lambda: None
        killer.start()
        killer.join(20)
        assert killer.left == 0
        (victim,) = killer.killed
        deadline = time.monotonic() + 10
        while psutil.Process(victim).status() != psutil.STATUS_ZOMBIE:  # the launcher never asks for it
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        for process in [*psutil.Process(job.pid).children(recursive=True), psutil.Process(job.pid)]:
            process.kill()
        job.communicate()
