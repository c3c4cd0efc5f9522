"""A rank that fails, dies, stops or hangs: the other ranks end, and the right one is named."""

from __future__ import annotations

import os
import signal

import pytest

from tests.dist import jobs
from tests.dist.processes import Job
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow


def wait_for(job: Job, text: str, rank: int = 0) -> None:
    wait_until(
        lambda: text in job.output(rank) or not job.processes[rank].is_alive(),
        f"{text!r} in the output",
        lambda: job.output(rank),
    )
    assert job.processes[rank].is_alive(), job.errors()


@pytest.mark.parametrize("rank", [1, 0])
def test_an_error_on_one_rank_ends_all_and_is_named_by_all(rank, tmp_path):
    """Rank 0 owns the store and takes it along when it exits."""
    job = Job(2, jobs.train_with_trouble, tmp_path, kind="error", rank=rank, iteration=5, timeout=6)
    job.wait()
    failed, other = job.errors()[rank], job.errors()[1 - rank]
    assert "ValueError: this rank alone failed" in failed
    assert "Trouble at before_train_iter" in failed
    assert f"PeerFailed: rank {rank} failed: ValueError: this rank alone failed" in other


@pytest.mark.parametrize(("rank", "batch_norm"), [(1, False), (0, True)])
def test_a_rank_that_hangs_is_named_with_its_iteration_and_hook(rank, batch_norm, tmp_path):
    """With buffers the other rank already waits in DDP's forward, for rank 0's buffers."""
    trouble = {"kind": "hang", "rank": rank, "iteration": 6, "timeout": 4}
    job = Job(2, jobs.train_with_trouble, tmp_path, **trouble, batch_norm=batch_norm).wait()
    # If the hanging rank is the first to end, the other one raises the diagnosis.
    output = job.output(0) + "".join(job.errors())
    reason = "never reached the collective that the other ranks are waiting in"
    assert f"rank {rank} {reason} (no progress for 4 s)" in output
    assert f"rank {rank}: epoch 1, iteration 6, Trouble at before_train_iter" in output
    where = "forward" if batch_norm else "OptimizerHook at optimize"
    assert f"rank {1 - rank}: epoch 1, iteration 6, {where}" in output
    assert "in before_train_iter" in job.output(rank)  # The stack of the rank.


@pytest.mark.parametrize("rank", [1, 0])
def test_a_stopped_rank_is_named_and_killed(rank, tmp_path):
    """While rank 0 is stopped, its store answers no rank."""
    job = Job(2, jobs.train_to_be_stopped, tmp_path, timeout=4)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[rank].pid, signal.SIGSTOP)
    (tmp_path / "gate").touch()
    stopped, other = job.processes[rank], job.processes[1 - rank]
    other.join(LIMIT_S)
    assert other.exitcode == 1
    assert f"hookline: rank {rank} stopped responding" in job.output(1 - rank)
    assert "(no progress for 4 s)" in job.output(1 - rank)
    stopped.join(LIMIT_S)
    assert stopped.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("rank", [1, 0])
def test_a_killed_rank_ends_the_others_and_is_named(rank, tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000, batch_norm=True)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[rank].pid, signal.SIGKILL)
    job.wait()
    (error,) = job.errors()
    assert f"PeerFailed: rank {rank} stopped responding" in error


def test_ranks_in_different_collectives_are_named_with_them(tmp_path):
    trouble = {"kind": "elsewhere", "rank": 1, "iteration": 6, "timeout": 4}
    job = Job(2, jobs.train_with_trouble, tmp_path, **trouble).wait()
    assert (
        "the ranks are waiting in different collectives (no progress for 4 s). "
        "rank 0: epoch 1, iteration 6, OptimizerHook at optimize; "
        "rank 1: epoch 1, iteration 6, Trouble at before_train_iter"
    ) in end_of_rank(0, job)


def test_ranks_with_different_numbers_of_batches_are_named_with_their_positions(tmp_path):
    job = Job(2, jobs.train_unequally, tmp_path, timeout=4).wait()
    assert (
        "the ranks are waiting in different collectives (no progress for 4 s). "
        "rank 0: epoch 1, iteration 6, OptimizerHook at optimize; "
        "rank 1: epoch 1, after iteration 5, LoggerHook at after_train_epoch"
    ) in end_of_rank(0, job)


def end_of_rank(rank, job):
    """Return what a rank has printed, and its error if the other one was first to find out."""
    error = job.folder / f"error_{rank}.txt"
    return job.output(rank) + (error.read_text() if error.exists() else "")


def test_sigterm_to_one_rank_saves_and_stops_all(tmp_path):
    job = Job(2, jobs.train_part, tmp_path, max_epochs=100_000)
    wait_for(job, "val  epoch 2")
    os.kill(job.processes[1].pid, signal.SIGTERM)
    job.wait()
    assert (tmp_path / "run" / "last.pth").exists()
    assert "interrupted by SIGTERM" in job.output(0)
