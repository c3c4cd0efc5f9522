"""Small messages, shares of an evaluation, statistics: between two real processes."""

from __future__ import annotations

import math

import pytest
import torch

from hookline import make_loader
from tests.dist import jobs, share_jobs
from tests.dist.processes import run_job

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("long", [1, 5000])
def test_messages_of_any_length_come_over(tmp_path, long):
    for result in run_job(2, jobs.talk, tmp_path, long=long):
        assert result == {"lengths": [1, long], "main": "from 0", "sum": [3.0, 1.0]}


def test_a_data_set_with_evaluate_gets_all_predictions_in_order_and_a_custom_metric_its_mean(
    tmp_path,
):
    (alone,) = run_job(1, jobs.evaluate, tmp_path / "one")
    both = run_job(2, jobs.evaluate, tmp_path / "two")
    assert both[0] == both[1] == pytest.approx(alone)
    assert set(alone) == {"judged", "first", "last", "local", "val_loss"}


def test_metrics_without_a_loss_are_weighted_by_samples_and_none_counts_twice(tmp_path):
    (alone,) = run_job(1, share_jobs.evaluate, tmp_path / "one")
    both = run_job(2, share_jobs.evaluate, tmp_path / "two")
    assert set(alone) == {"local", "nothing"}
    for result in both:
        assert result["local"] == pytest.approx(alone["local"])
        assert math.isnan(result["nothing"])


def test_numbers_are_reported_as_those_of_all_processes(tmp_path):
    means = dict.fromkeys(["loss", "accuracy", "throughput/mfu"], 2.0)
    slowest = {"time": 3.0, "data_time": 3.0, "eta": 3.0, "time/data": 3.0, "time/iters_per_s": 1.0}
    most = {"system/memory_mb": 3.0, "memory/rss_peak_gb": 3.0, "memory/gpu_gb": 3.0}
    together = dict.fromkeys(
        [
            "time/samples_per_s",
            "throughput/samples_per_s",
            "throughput/tokens_per_s",
            "throughput/flops_per_s",
        ],
        4.0,
    )
    expected = {**means, **slowest, **most, **together}
    for result in run_job(2, share_jobs.reported, tmp_path, names=list(expected)):
        assert result == expected


@pytest.mark.parametrize(
    "hook",
    [{"type": "SyncBuffersHook"}, {"type": "CheckpointHook", "sync_buffer": True}],
    ids=["hook", "checkpoint"],
)
def test_buffers_become_their_mean_over_all_processes(tmp_path, hook):
    first, second = run_job(2, share_jobs.averaged_buffers, tmp_path, hook=hook)
    assert not torch.equal(first["before"], second["before"])
    mean = (first["before"] + second["before"]) / 2
    for result in (first, second):
        assert torch.allclose(result["after"], mean)
        assert torch.allclose(result["saved"], mean)


def test_averages_begin_with_the_first_processes_weights_on_all(tmp_path):
    first, second = run_job(2, share_jobs.averaged_weights, tmp_path)
    for what in ("first", "average"):
        assert all(torch.equal(first[what][name], second[what][name]) for name in first[what])


def test_precise_statistics_of_two_processes_are_the_true_averages_over_all_their_batches(tmp_path):
    both = run_job(2, jobs.statistics, tmp_path, hook="PreciseBNHook")
    first = jobs.network(batch_norm=True)[0]
    first.load_state_dict({name: both[0]["weights"][f"0.{name}"] for name in ("weight", "bias")})
    loaders = [
        make_loader(jobs.data(), batch_size=8, shuffle=True, seed=3, rank=rank, world_size=2)
        for rank in (0, 1)
    ]
    with torch.no_grad():
        outputs = [first(inputs).double() for loader in loaders for inputs, _ in loader]
    assert torch.allclose(
        both[0]["mean"].double(), torch.stack([each.mean(0) for each in outputs]).mean(0), atol=1e-6
    )
    assert torch.allclose(
        both[0]["var"].double(), torch.stack([each.var(0) for each in outputs]).mean(0), atol=1e-6
    )


def test_what_cannot_work_in_several_processes_is_refused_before_training(tmp_path):
    errors = run_job(2, jobs.refused, tmp_path / "sync_bn", sync_bn=True)
    assert all("batch norm" in text for text in errors)
    errors = run_job(2, share_jobs.differing, tmp_path / "model", what="model")
    assert "1.weight (2, 3) on rank 0, 1.weight (3, 3) on rank 1" in errors[0]
    errors = run_job(2, share_jobs.differing, tmp_path / "order", what="order")
    assert all("0 on rank 0, 1 on rank 1" in text for text in errors)


def test_compiled_weights_keep_their_names(tmp_path):
    first, second = run_job(2, jobs.train, tmp_path, compile={"backend": "eager"}, max_epochs=1)
    assert list(first["weights"]) == ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert all(
        torch.equal(first["weights"][name], second["weights"][name]) for name in first["weights"]
    )


def test_loaders_of_different_length_are_refused_before_training(tmp_path):
    for error in run_job(2, jobs.uneven, tmp_path):
        assert "train_loader" in error
        assert "5 on rank 0, 4 on rank 1" in error


def test_the_clock_of_one_process_saves_for_all(tmp_path):
    first, second = run_job(2, jobs.save_by_the_clock, tmp_path)
    assert first == second >= 1
