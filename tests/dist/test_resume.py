"""Resuming with as many processes, fewer, or more."""

from __future__ import annotations

import pytest
import torch

from tests.dist import jobs, share_jobs
from tests.dist.processes import run_job

pytestmark = pytest.mark.slow
ITERATION = {"type": "CheckpointHook", "by_epoch": False, "interval": 3}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_resumed_run_ends_bit_identical_with_the_random_numbers_of_each_process(tmp_path):
    options = {"dropout": 0.4, "adam": True, "hooks": [ITERATION]}
    straight = run_job(2, jobs.train, tmp_path / "straight", **options)
    run_job(
        2,
        jobs.train_part,
        tmp_path / "cut",
        **{**options, "hooks": [ITERATION, {"type": "StopAtHook", "iter": 11}]},
    )
    resumed = run_job(2, jobs.train, tmp_path / "cut", resume="auto", **options)
    assert resumed[0]["iter"] == straight[0]["iter"]
    for rank in (0, 1):
        assert same(resumed[rank]["weights"], straight[rank]["weights"])


@pytest.mark.parametrize("counts", [(2, 1, 2), (1, 2, 1)])
def test_a_resumed_job_sees_exactly_the_unseen_samples_of_the_epoch(tmp_path, counts):
    options = {"max_epochs": 1, "batch_size": 8}
    seen: list[float] = []
    for part, count in enumerate(counts):
        stop = [{"type": "StopAtHook", "iter": 4 * (part + 1)}] if part < 2 else []
        results = run_job(
            count,
            jobs.train_part,
            tmp_path,
            hooks=[ITERATION, *stop],
            resume="auto" if part else None,
            **options,
        )
        for result in results:
            seen += result["seen"]
    assert sorted(seen) == sorted(jobs.data().tensors[0][:, 0].tolist())


def test_a_run_knows_its_length_when_there_are_more_processes_with_as_many_samples_each(tmp_path):
    (before,) = run_job(
        1,
        share_jobs.lengths,
        tmp_path,
        batch_size=8,
        hooks=[ITERATION, {"type": "StopAtHook", "iter": 4}],
        max_epochs=2,
    )
    assert before == {"max_iters": 26, "iter": 4, "epoch": 0}
    left = -(-(103 - 4 * 8) // 16) + 7
    for result in run_job(
        2,
        share_jobs.lengths,
        tmp_path,
        batch_size=8,
        hooks=[ITERATION],
        max_epochs=2,
        resume="auto",
    ):
        assert result == {"max_iters": 4 + left, "iter": 4 + left, "epoch": 2}


def test_a_checkpoint_of_two_processes_has_one_file_that_one_process_can_read(tmp_path):
    both = run_job(2, jobs.train, tmp_path, max_epochs=1)
    (alone,) = run_job(1, jobs.train, tmp_path, max_epochs=1, resume="auto")
    assert same(both[0]["weights"], alone["weights"])
    assert alone["metrics"] == both[0]["metrics"]
