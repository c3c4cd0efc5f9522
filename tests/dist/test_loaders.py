"""Exact resume of jobs of two processes, with the loaders that people use."""

from __future__ import annotations

import pytest
import torch

from tests.dist import loader_jobs
from tests.dist.processes import run_job


@pytest.mark.slow
@pytest.mark.parametrize("name", ["WeightedRandomSampler", "stateful loader without length"])
def test_each_of_two_ranks_continues_at_its_own_position(tmp_path, name):
    straight = run_job(2, loader_jobs.train_part, tmp_path / "straight", name=name)
    first = run_job(2, loader_jobs.train_part, tmp_path / "cut", name=name, cut=5)
    second = run_job(2, loader_jobs.train_part, tmp_path / "cut", name=name)
    for rank in (0, 1):
        assert first[rank]["rows"] + second[rank]["rows"] == straight[rank]["rows"]
        for key, value in straight[rank]["weights"].items():
            assert torch.equal(second[rank]["weights"][key], value)
    assert straight[0]["rows"] != straight[1]["rows"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("num_workers", [0, 2])
def test_every_loader_continues_exactly_on_each_of_two_ranks(tmp_path, num_workers):
    differing = run_job(2, loader_jobs.compare_all, tmp_path, num_workers=num_workers)
    assert differing == [[], []]
