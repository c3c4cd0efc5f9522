"""A process that fails, dies, stops or goes elsewhere: the others end soon, and the right one is named."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from tests.dist import jobs
from tests.dist.processes import Job

pytestmark = pytest.mark.slow

SOON = 5.0 + 3.0  # seconds: what is promised, and what a busy machine may take to end a process


def wait_for(job: Job, text: str, rank: int = 0) -> None:
    deadline = time.monotonic() + 60
    while text not in job.output(rank):
        assert job.processes[rank].is_alive(), job.errors()
        assert time.monotonic() < deadline, job.output(rank)
        time.sleep(0.05)


@pytest.mark.parametrize("rank", [1, 0])
def test_an_error_in_one_process_ends_all_when_that_one_is_tidy_and_is_named_by_all(rank, tmp_path):
    """The main one has the store, when torchrun has not, and takes it along."""
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="error", rank=rank, iteration=5, timeout=6)
    job.wait(60)
    guilty, other = job.errors()[rank], job.errors()[1 - rank]
    assert "ValueError: this process alone went wrong" in guilty
    assert "Trouble at before_train_iter" in guilty
    assert f"PeerFailed: process {rank} failed: ValueError: this process alone went wrong" in other


@pytest.mark.parametrize(("rank", "batch_norm"), [(1, False), (0, True)])
def test_a_process_that_sleeps_is_named_with_its_iteration_and_hook(rank, batch_norm, tmp_path):
    """With buffers the others already wait in DDP's forward for the main process to send its own."""
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="sleep", rank=rank, iteration=6, timeout=4, batch_norm=batch_norm)
    job.wait(60)
    told = job.output(0)
    assert f"process {rank} did not come to where the others wait; nothing moved for 4 s" in told
    assert f"process {rank}: epoch 1, iteration 6, Trouble at before_train_iter" in told
    assert f"process {1 - rank}: epoch 1, iteration 6, {'forward' if batch_norm else 'OptimizerHook at optimize'}" in told
    assert "in before_train_iter" in job.output(rank)  # its stack


@pytest.mark.parametrize("rank", [1, 0])
def test_a_stopped_process_is_named(rank, tmp_path):
    """The main one has the store, when torchrun has not: then nothing can be asked of anyone."""
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000, batch_norm=True, strategy={"type": "ddp", "timeout": 4})
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[rank].pid, signal.SIGSTOP)
    other = job.processes[1 - rank]
    other.join(4 + SOON)
    assert other.exitcode == 1
    assert f"hookline: process {rank} answered no more" in job.output(1 - rank)
    assert re.search(f"{'Here' if rank == 0 else 'process 1'}: (epoch|after iteration|before the first iteration)", job.output(1 - rank))


@pytest.mark.parametrize("rank", [1, 0])
def test_a_killed_process_ends_the_others_within_seconds_and_is_named(rank, tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000, batch_norm=True)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[rank].pid, signal.SIGKILL)
    killed = time.monotonic()
    job.wait(30)
    assert time.monotonic() - killed < SOON
    (told,) = job.errors()
    assert f"PeerFailed: process {rank} answered no more" in told


def test_processes_at_different_places_are_told_with_these(tmp_path):
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="elsewhere", rank=1, iteration=6, timeout=4)
    job.wait(60)
    assert (
        "hookline: the processes wait for each other at different places; nothing moved for 4 s. Where they are: "
        "process 0: epoch 1, iteration 6, OptimizerHook at optimize; process 1: epoch 1, iteration 6, Trouble at before_train_iter"
    ) in job.output(0)


def test_processes_with_different_numbers_of_batches_are_told_where_they_are(tmp_path):
    job = Job(2, jobs.train_unequally, tmp_path, timeout=4)
    job.wait(60)
    assert (
        "hookline: the processes wait for each other at different places; nothing moved for 4 s. Where they are: "
        "process 0: epoch 1, iteration 6, OptimizerHook at optimize; process 1: epoch 1, after iteration 5, LoggerHook at after_train_epoch"
    ) in job.output(0)


def test_sigterm_to_one_process_saves_and_stops_all(tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[1].pid, signal.SIGTERM)
    job.wait(30)
    assert (tmp_path / "run" / "last.pth").exists()
    assert "interrupted by SIGTERM (process 1)" in job.output(0)
