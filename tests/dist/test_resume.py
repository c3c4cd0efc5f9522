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


def test_metrics_of_training_batches_count_every_sample_once_over_all_processes(tmp_path):
    (alone,) = run_job(1, share_jobs.train_metrics, tmp_path / "one", lr=0.0)
    both = run_job(2, share_jobs.train_metrics, tmp_path / "two", lr=0.0)
    data = jobs.data().tensors
    correct = int((jobs.network().eval()(data[0]).argmax(1) == data[1]).sum())
    assert alone["train/accuracy"] == [correct / len(data[1])] * 2
    assert [each["train/accuracy"] for each in both] == [alone["train/accuracy"]] * 2


@pytest.mark.parametrize("count", [2, 1])
def test_metrics_of_training_batches_are_the_same_after_a_resume_inside_an_epoch(tmp_path, count):
    lr = 0.1 if count == 2 else 0.0  # With another number of processes, the steps differ a little.
    save = {**ITERATION, "max_keep_ckpts": -1}
    straight = run_job(2, share_jobs.train_metrics, tmp_path / "straight", lr=lr, hooks=[save])
    inside = str(tmp_path / "straight" / "run" / "iter_6.pth")
    resumed = run_job(count, share_jobs.train_metrics, tmp_path / "again", lr=lr, resume=inside)
    assert len(straight[0]["train/accuracy"]) == 2
    if count == 2:
        assert resumed == straight
    else:
        assert resumed[0]["train/accuracy"] == straight[0]["train/accuracy"]
