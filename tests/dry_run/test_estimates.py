"""Estimates of time, disk and memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import Runner, make_loader
from hookline.dry_run import estimates
from hookline.dry_run.estimates import Workload

WORKLOAD = Workload(
    iterations=100,
    validations=5,
    validation_batches=10,
    saves=4,
    kept=3,
    workers=0,
    checkpoint_directory=Path("."),
    time_limit=None,
)


def make_runner(tmp_path: Path, *hooks: dict, **options) -> Runner:
    data = TensorDataset(torch.randn(40, 4), torch.randint(3, (40,)))
    model = nn.Linear(4, 3)
    return Runner(
        model,
        train_loader=make_loader(data, batch_size=4),
        val_loader=make_loader(data, batch_size=8),
        optimizer=torch.optim.AdamW(model.parameters()),
        loss_fn=nn.CrossEntropyLoss(),
        work_dir=tmp_path / "temporary",
        hooks=list(hooks),
        **{"max_epochs": 6, **options},
    )


def test_a_workload_counts_validations_and_saves(tmp_path: Path) -> None:
    runner = make_runner(
        tmp_path,
        {"type": "EvalHook", "interval": 2},
        {"type": "CheckpointHook", "interval": 20, "by_epoch": False, "max_keep_ckpts": 2},
        {"type": "TimeLimitHook", "limit": "2min"},
    )
    workload = Workload.from_runner(runner, tmp_path / "real")
    assert workload == Workload(
        iterations=60,
        validations=3,
        validation_batches=5,
        saves=3,
        kept=4,
        workers=0,
        checkpoint_directory=tmp_path / "real",
        time_limit=120.0,
    )


def test_all_checkpoints_are_kept_without_a_limit(tmp_path: Path) -> None:
    hook = {"type": "CheckpointHook", "max_keep_ckpts": -1, "out_dir": str(tmp_path / "out")}
    workload = Workload.from_runner(make_runner(tmp_path, hook), tmp_path)
    assert workload.kept == 6 + estimates.BEST_AND_NEXT
    assert workload.checkpoint_directory == tmp_path / "out"


def test_a_run_that_saves_and_validates_nothing_has_a_small_workload(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, drop_hooks=["CheckpointHook", "EvalHook"])
    workload = Workload.from_runner(runner, tmp_path)
    assert (workload.saves, workload.kept, workload.validations) == (0, 0, 0)


def test_the_time_is_extrapolated_from_medians() -> None:
    seconds = estimates.estimate_time(WORKLOAD, [1.0, 2.0, 30.0], [0.5], save_seconds=3.0)
    assert seconds == {"training": 200.0, "saving": 12.0, "validation": 25.0}
    assert estimates.estimate_time(WORKLOAD, [1.0], [], 0.0) == {"training": 100.0, "saving": 0.0}


@pytest.mark.parametrize(
    ("workload", "steps"), [(WORKLOAD, []), (replace(WORKLOAD, iterations=None), [1.0])]
)
def test_without_length_or_measurements_there_is_no_estimate(workload, steps) -> None:
    assert estimates.estimate_time(workload, steps, [], 0.0) == {}


def test_a_run_beyond_its_time_limit_is_a_warning() -> None:
    limited = replace(WORKLOAD, time_limit=60.0)
    assert estimates.check_time(WORKLOAD, 1e9) == []
    assert estimates.check_time(limited, 60.0) == []
    (finding,) = estimates.check_time(limited, 61.0)
    assert (finding.level, finding.where) == ("warning", "time")


def test_checkpoints_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    workload = replace(WORKLOAD, checkpoint_directory=tmp_path / "not" / "there")
    disk = estimates.estimate_disk(workload, checkpoint_size=1000)
    assert disk["checkpoints"] == 3000
    assert disk["free"] > 0
    assert estimates.check_disk(workload, disk) == []
    (finding,) = estimates.check_disk(workload, {**disk, "free": 2999})
    assert (finding.level, finding.where) == ("error", "disk")


def test_memory_of_weights_gradients_and_optimizer_is_counted(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, max_epochs=1)
    runner.model.bias.requires_grad = False
    runner.train()
    memory = estimates.measure_memory(runner, snapshot_size=9)
    assert memory["weights"] == 15 * 4
    assert memory["gradients"] == 12 * 4
    assert memory["optimizer"] == 2 * 12 * 4 + 4  # two moments, and the number of steps
    assert memory["snapshot"] == 9
    assert 0 < memory["peak"] < memory["total"]
    runner.optimizer = {"a": runner.optimizer, "b": torch.optim.SGD([torch.zeros(1)], lr=0.1)}
    several = estimates.measure_memory(runner, snapshot_size=9)
    assert several["optimizer"] == memory["optimizer"]


def test_memory_that_is_nearly_used_up_is_a_warning() -> None:
    assert estimates.check_memory({"peak": 90, "total": 100}, workers=0) == []
    (finding,) = estimates.check_memory({"peak": 91, "total": 100}, workers=2)
    assert (finding.level, finding.where) == ("warning", "memory")
    assert "workers" in finding.advice
    (finding,) = estimates.check_memory({"peak": 91, "total": 100}, workers=0)
    assert "workers" not in finding.advice


def test_too_many_workers_and_long_waits_are_warnings() -> None:
    assert estimates.check_workers(WORKLOAD, 0.5) == []
    (finding,) = estimates.check_workers(WORKLOAD, 0.51)
    assert "num_workers" in finding.advice
    (finding,) = estimates.check_workers(replace(WORKLOAD, workers=100_000), 0.0)
    assert "100000 data workers" in finding.text
