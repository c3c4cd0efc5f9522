"""Small messages, shares of an evaluation, statistics: between two real processes."""

from __future__ import annotations

import pytest
import torch

from hookline import make_loader
from tests.dist import jobs
from tests.dist.processes import run_job

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("long", [1, 5000])
def test_messages_of_any_length_come_over(tmp_path, long):
    for result in run_job(2, jobs.talk, tmp_path, long=long):
        assert result == {"told": [1, long], "main": "from 0", "sum": [3.0, 1.0]}


def test_a_data_set_that_judges_gets_all_predictions_in_order_and_a_metric_of_ones_own_its_mean(tmp_path):
    (alone,) = run_job(1, jobs.evaluate, tmp_path / "one")
    both = run_job(2, jobs.evaluate, tmp_path / "two")
    assert both[0] == both[1] == pytest.approx(alone)
    assert set(alone) == {"judged", "first", "last", "local", "val_loss"}


@pytest.mark.parametrize("hook", ["SyncBuffersHook", "PreciseBNHook"])
def test_statistics_are_those_of_all_processes(tmp_path, hook):
    first, second = run_job(2, jobs.statistics, tmp_path, hook=hook)
    assert torch.equal(first["mean"], second["mean"])
    assert torch.equal(first["var"], second["var"])


def test_precise_statistics_of_two_processes_are_the_true_averages_over_all_their_batches(tmp_path):
    both = run_job(2, jobs.statistics, tmp_path, hook="PreciseBNHook")
    first = jobs.network(batch_norm=True)[0]
    first.load_state_dict({name: both[0]["weights"][f"0.{name}"] for name in ("weight", "bias")})
    loaders = [make_loader(jobs.data(), batch_size=8, shuffle=True, seed=3, rank=rank, world_size=2) for rank in (0, 1)]
    with torch.no_grad():
        outputs = [first(inputs).double() for loader in loaders for inputs, _ in loader]
    assert torch.allclose(both[0]["mean"].double(), torch.stack([each.mean(0) for each in outputs]).mean(0), atol=1e-6)
    assert torch.allclose(both[0]["var"].double(), torch.stack([each.var(0) for each in outputs]).mean(0), atol=1e-6)


def test_what_cannot_work_in_several_processes_is_refused_before_training(tmp_path):
    told = run_job(2, jobs.refused, tmp_path / "rollback", hooks=[{"type": "RollbackHook"}])
    assert all("RollbackHook: going back works in a run of one process only" in text for text in told)
    told = run_job(2, jobs.refused, tmp_path / "sync_bn", sync_bn=True)
    assert all("no synchronised batch norm for the CPU" in text for text in told)


def test_compiled_weights_keep_their_names(tmp_path):
    first, second = run_job(2, jobs.train, tmp_path, compile={"backend": "eager"}, max_epochs=1)
    assert list(first["weights"]) == ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert all(torch.equal(first["weights"][name], second["weights"][name]) for name in first["weights"])


def test_loaders_of_different_length_are_refused_before_training(tmp_path):
    for told in run_job(2, jobs.uneven, tmp_path):
        assert "train_loader has different numbers of batches (5 on process 0, 4 on process 1)" in told


def test_the_clock_of_one_process_saves_for_all(tmp_path):
    first, second = run_job(2, jobs.save_by_the_clock, tmp_path)
    assert first == second >= 1
