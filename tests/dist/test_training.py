"""Two real processes against one."""

from __future__ import annotations

import json

import pytest
import torch

from tests.dist import jobs, share_jobs
from tests.dist.processes import Job, run_job

pytestmark = pytest.mark.slow


def losses(folder):
    rows = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if row["mode"] == "train"]


def close(a, b, tolerance=1e-5):
    return all(torch.allclose(a[name], b[name], rtol=tolerance, atol=tolerance) for name in a)


def test_two_processes_train_as_one_does_with_twice_the_batch(tmp_path):
    hooks = [{"type": "LoggerHook", "interval": 1}]
    (alone,) = run_job(1, jobs.train, tmp_path / "one", hooks=hooks)
    first, second = run_job(2, jobs.train, tmp_path / "two", hooks=hooks)
    assert len(losses(tmp_path / "one")) == len(losses(tmp_path / "two")) == 21
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    assert close(first["weights"], alone["weights"])
    assert all(
        torch.equal(first["weights"][name], second["weights"][name]) for name in first["weights"]
    )


def test_metrics_over_shares_of_a_set_of_odd_size_are_those_of_one_process(tmp_path):
    (alone,) = run_job(1, jobs.train, tmp_path / "one", hooks=[{"type": "EvalHook"}], max_epochs=1)
    both = run_job(2, jobs.train, tmp_path / "two", hooks=[{"type": "DistEvalHook"}], max_epochs=1)
    assert both[0]["metrics"] == both[1]["metrics"]
    assert both[0]["metrics"]["accuracy"] == alone["metrics"]["accuracy"]
    assert both[0]["metrics"]["f1"] == pytest.approx(alone["metrics"]["f1"], rel=1e-6)
    assert both[0]["metrics"]["val_loss"] == pytest.approx(alone["metrics"]["val_loss"], rel=1e-5)


def test_metrics_that_a_function_measures_on_shares_are_those_of_the_whole_set(tmp_path):
    (alone,) = run_job(1, jobs.measure, tmp_path / "one")
    both = run_job(2, jobs.measure, tmp_path / "two")
    assert sum(rank["samples"] for rank in both) == 51
    assert alone["samples"] == 51
    assert both[0]["metrics"] == both[1]["metrics"]
    assert both[0]["metrics"] == pytest.approx(alone["metrics"])
    assert both[0]["epoch"] == both[1]["epoch"]


def test_two_ranks_count_every_token_and_text_once(tmp_path):
    (alone,) = run_job(1, jobs.measure_text, tmp_path / "one")
    for rank in run_job(2, jobs.measure_text, tmp_path / "two"):
        assert rank["exact_match"] == alone["exact_match"] == pytest.approx(11 / 13)
        assert rank["perplexity"] == pytest.approx(alone["perplexity"], rel=1e-12)


def test_predictions_of_two_ranks_are_those_of_one_in_the_order_of_the_data(tmp_path):
    (alone,) = run_job(1, jobs.predict, tmp_path / "one")
    both = run_job(2, jobs.predict, tmp_path / "two")
    assert alone["predictions"].shape == (51, 2)
    for result in both:
        torch.testing.assert_close(result["predictions"], alone["predictions"])


def test_a_function_must_measure_the_same_on_all_ranks(tmp_path):
    job = Job(2, jobs.measure, tmp_path, names=("right", "wrong")).wait()
    assert all("other metrics on rank 1" in str(error) for error in job.errors())


@pytest.mark.parametrize("together", [3, 4])
def test_accumulation_gives_the_same_also_where_a_group_ends_with_an_uneven_batch(
    tmp_path, together
):
    hooks = [{"type": "GradientCumulativeOptimizerHook", "cumulative_iters": together}]
    (alone,) = run_job(1, jobs.train, tmp_path / "one", hooks=hooks)
    first, second = run_job(2, jobs.train, tmp_path / "two", hooks=hooks)
    assert close(first["weights"], alone["weights"])
    assert all(
        torch.equal(first["weights"][name], second["weights"][name]) for name in first["weights"]
    )


def test_the_last_batch_is_weighted_once_with_all_outputs_of_the_step(tmp_path):
    assert run_job(2, share_jobs.weighing_hooks, tmp_path / "hooks") == [[1, 1, 0]] * 2
    (alone,) = run_job(1, share_jobs.errors, tmp_path / "one")
    both = run_job(2, share_jobs.errors, tmp_path / "two")
    assert both[0] == pytest.approx(alone)


def test_a_run_that_was_stopped_early_stays_stopped(tmp_path):
    hooks = [{"type": "EarlyStoppingHook", "stopping_threshold": 100.0}]
    before = run_job(2, jobs.train, tmp_path, hooks=hooks)
    after = run_job(2, jobs.train, tmp_path, hooks=hooks, resume="auto")
    assert [(result["iter"], result["epoch"]) for result in after] == [(before[0]["iter"], 1)] * 2
    assert before[0]["stop"] == after[0]["stop"]
    assert "stopping_threshold" in after[0]["stop"]


def test_one_process_that_asks_to_stop_stops_all_at_the_same_iteration_with_a_checkpoint(tmp_path):
    first, second = run_job(2, jobs.train_part, tmp_path, stop_at=5, max_epochs=30)
    assert first["iter"] == second["iter"]
    assert 5 <= first["iter"] <= 5 + 64
    assert first["stop"] == second["stop"] == "enough"
    assert (tmp_path / "run" / "last.pth").exists()


def test_several_ranks_stop_at_the_given_iteration(tmp_path):
    hooks = [{"type": "StopAtHook", "iter": 5}]
    assert [each["iter"] for each in run_job(2, jobs.train, tmp_path, hooks=hooks)] == [5, 5]
