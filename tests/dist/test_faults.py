"""A process that fails, dies, stops or goes elsewhere: the others end soon, and the right one is named."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.dist import jobs
from tests.dist.processes import Job

pytestmark = pytest.mark.slow


def ended(job: Job, seconds: float) -> float:
    """How long it takes until the processes have ended."""
    started = time.monotonic()
    job.wait(seconds)
    return time.monotonic() - started


def wait_for(job: Job, text: str, rank: int = 0) -> None:
    deadline = time.monotonic() + 60
    while text not in job.output(rank):
        assert time.monotonic() < deadline, job.output(rank)
        time.sleep(0.05)


def test_an_error_in_one_process_ends_all_and_is_named_by_all(tmp_path):
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="error", rank=1, iteration=5, timeout=60)
    job.wait(60)
    other, guilty = job.errors()
    assert "ValueError: this process alone went wrong" in guilty
    assert "Trouble at before_train_iter" in guilty
    assert "process 1 failed: ValueError: this process alone went wrong" in other


def test_a_process_that_sleeps_is_named_with_its_iteration_and_hook(tmp_path):
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="sleep", rank=1, iteration=6, timeout=4)
    assert ended(job, 60) < 60
    told = job.output(0)
    assert "process 1 did not come to where the others wait" in told
    assert "process 1: epoch 1, iteration 6, Trouble at before_train_iter" in told
    assert "in before_train_iter" in job.output(1)  # its stack


def test_a_stopped_process_is_named(tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000, strategy={"type": "ddp", "timeout": 8})
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[1].pid, signal.SIGSTOP)
    job.processes[0].join(60)
    assert job.processes[0].exitcode == 1
    assert "process 1 answered no more" in job.output(0)
    assert "process 1: epoch" in job.output(0)
    job.processes[1].kill()


def test_a_killed_process_ends_the_others_within_seconds_and_is_named(tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[1].pid, signal.SIGKILL)
    assert ended(job, 30) < 15
    assert "process 1 answered no more" in "".join(job.errors())


def test_processes_at_different_places_are_told_with_these(tmp_path):
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="elsewhere", rank=1, iteration=6, timeout=4)
    assert ended(job, 60) < 60
    told = job.output(0) + "".join(job.errors())
    assert "Trouble at before_train_iter" in told or "not at the same place" in told


def test_sigterm_to_one_process_saves_and_stops_all(tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[1].pid, signal.SIGTERM)
    job.wait(30)
    assert (tmp_path / "run" / "last.pth").exists()
    assert "interrupted by SIGTERM (process 1)" in job.output(0)
