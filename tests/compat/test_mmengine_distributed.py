"""MMEngine's Runner in a job of two processes: `launcher="pytorch"`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from hookline.compat.mmengine.dist import all_reduce_params
from tests.compat.mmengine_parts import make_runner
from tests.dist.processes import run_job


def train(folder: Path, epochs: int, resume: bool = False) -> dict[str, Any]:
    """What a process sees of a run."""
    hooks = [{"type": "SyncBuffersHook"}, {"type": "EMAHook", "momentum": 0.1}]
    checkpoints = {"checkpoint": {"type": "CheckpointHook", "interval": 1, "save_best": "accuracy"}}
    runner = make_runner(
        folder,
        epochs,
        launcher="pytorch",
        custom_hooks=hooks,
        default_hooks=checkpoints,
        resume=resume,
    )
    runner.train()
    counters = [torch.tensor([4 * runner.rank]), torch.tensor([1.0 + runner.rank])]
    all_reduce_params(counters, op="mean")
    return {
        "means": [counter.item() for counter in counters],
        "model": type(runner.model).__name__,
        "world": [runner.rank, runner.world_size],
        "iter": runner.iter,
        "weights": [parameter.double().sum().item() for parameter in runner.model.parameters()],
        "accuracy": runner.message_hub.get_scalar("val/accuracy").data[0].tolist(),
    }


def first_part(folder: Path) -> dict[str, Any]:
    return train(folder / "run", 1)


def both_parts(folder: Path) -> dict[str, Any]:
    return train(folder / "run", 2, resume=True)


def test_two_processes_train_one_model_and_resume(tmp_path: Path) -> None:
    run_job(2, first_part, tmp_path)
    one, other = run_job(2, both_parts, tmp_path)
    assert (one["world"], other["world"]) == ([0, 2], [1, 2])
    assert one["means"] == other["means"] == [2, 1.5]  # also of integers
    assert one["model"] == "MMDistributedDataParallel"
    assert one["weights"] == other["weights"]
    assert one["accuracy"] == other["accuracy"]
    assert len(one["accuracy"]) == 2
    assert one["iter"] == 4  # two batches of 8 for each process in an epoch of 32 samples
    names = {path.name for path in (tmp_path / "run").glob("epoch_*.pth")}
    assert names == {"epoch_1.pth", "epoch_2.pth"}
