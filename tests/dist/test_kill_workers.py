"""The script that kills workers: it must find them, or it shows nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import psutil

from tests.waiting import LIMIT_S, wait_until

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_workers.py"
# The command starts a launcher, which starts two workers with a rank and a helper without one, as
# torchrun may. All of them run until they are killed.
LAUNCHER = """
import os, signal, subprocess, sys
wait = [sys.executable, "-c", "import signal; signal.pause()"]
for rank in ({"RANK": "0"}, {"RANK": "1"}, {}):
    subprocess.Popen(wait, env={**os.environ, **rank})
print("started", flush=True)
signal.pause()
"""
COMMAND = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LAUNCHER!r}])"


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
        killer.join(LIMIT_S)
        assert killer.left == 0
        (victim,) = killer.killed
        # The launcher never reaps its child, so that a zombie stays.
        status = psutil.Process(victim).status
        wait_until(lambda: status() == psutil.STATUS_ZOMBIE, "the end of the worker")
    finally:
        for process in [*psutil.Process(job.pid).children(recursive=True), psutil.Process(job.pid)]:
            process.kill()
        job.communicate(timeout=LIMIT_S)
