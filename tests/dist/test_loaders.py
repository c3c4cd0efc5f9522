"""Exact resume of jobs of two processes, with the loaders that people use."""

from __future__ import annotations

import pytest

from tests.data.loaders import MAP_STYLE, STREAMS
from tests.dist import loader_jobs
from tests.dist.processes import run_job

STATEFUL = "stateful loader without length"
ALL = [*MAP_STYLE, *STREAMS]


def check(folder, name, num_workers):
    """Check that runs that are cut once and twice equal a straight one, on both ranks."""
    results = run_job(2, loader_jobs.find_differences, folder, name=name, num_workers=num_workers)
    assert [result["differences"] for result in results] == [{}, {}]
    return [result["trace"] for result in results]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["WeightedRandomSampler", STATEFUL])
def test_each_of_two_ranks_continues_at_its_own_position(tmp_path, name):
    one, two = check(tmp_path, name, 0)
    assert one != two


@pytest.mark.slow
def test_a_stateful_loader_of_one_rank_is_refused_by_two_inside_an_epoch(tmp_path):
    run_job(1, loader_jobs.train_to, tmp_path, name=STATEFUL, cut=5)
    for refusal in run_job(2, loader_jobs.find_refusal, tmp_path, name=STATEFUL):
        assert refusal["component"] == "train_loader"
        assert "same number of ranks" in refusal["advice"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*ALL, STATEFUL])
def test_every_loader_continues_exactly_on_each_of_two_ranks(tmp_path, name):
    check(tmp_path, name, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ALL)
def test_every_loader_with_workers_continues_exactly_on_each_of_two_ranks(tmp_path, name):
    check(tmp_path, name, 2)
