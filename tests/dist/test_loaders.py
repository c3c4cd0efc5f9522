"""Exact resume of jobs of two processes, with the loaders that people use."""

from __future__ import annotations

import pytest

from tests.dist import loader_jobs
from tests.dist.processes import run_job


@pytest.mark.slow
def test_every_loader_continues_exactly_on_each_of_two_ranks(tmp_path):
    assert run_job(2, loader_jobs.compare_all, tmp_path) == [[], []]


@pytest.mark.exhaustive
def test_every_loader_with_workers_continues_exactly_on_each_of_two_ranks(tmp_path):
    assert run_job(2, loader_jobs.compare_all, tmp_path, num_workers=2) == [[], []]
