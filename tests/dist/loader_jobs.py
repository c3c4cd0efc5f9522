"""Train with many kinds of loaders, interrupted and not, in one process of a job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import StopAtHook
from hookline.verify import compare_runs
from tests.data.loaders import MAP_STYLE, OTHERS, STREAMS

SEED = 11
OTHER_SEED = 12  # of a resumed process, to show that nothing depends on it
CUTS = {"once": (5,), "twice": (5, 9)}


class Net(nn.Module):
    """Predicts the random number of a sample from its index, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 8), nn.Dropout(0.5), nn.Linear(8, 1))

    def forward(self, indices: Any) -> Tensor:
        inputs: Tensor = torch.as_tensor(indices).float().reshape(-1, 1) / 26
        return self.layers(inputs).flatten()


class Trace(BaseHook):
    """Notes the samples of each iteration and their random numbers."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def after_train_iter(self, runner):
        indices, noise = runner.batch
        self.rows.append([torch.as_tensor(each).tolist() for each in (indices, noise)])


def make_loader(name: str, num_workers: int) -> Any:
    """Return a new loader of one kind."""
    if name in OTHERS:
        return OTHERS[name]()
    return {**MAP_STYLE, **STREAMS}[name](num_workers)


def find_differences(folder: Path, name: str, num_workers: int) -> dict[str, Any]:
    """Compare a straight run with one that is cut once, and one that is cut twice.

    Returns:
        The rank's trace of the straight run, and the differences of the others by subject: the
        rank's trace and, on rank 0, the parts of the last checkpoint.
    """
    straight = _train(folder / "straight", make_loader(name, num_workers))
    differences: dict[str, Any] = {}
    for number, cuts in CUTS.items():
        rows: list[Any] = []
        for cut in (*cuts, None):
            rows += _train(folder / number, make_loader(name, num_workers), cut)
        subjects = {"trace": [] if rows == straight else [f"{rows} and {straight}"]}
        if os.environ["RANK"] == "0":
            subjects |= compare_runs(folder / "straight", folder / number)
        for subject, texts in subjects.items():
            unexpected = [text for text in texts if text != f"seed: {SEED} and {OTHER_SEED}"]
            if unexpected:
                differences[f"{number}, {subject}"] = unexpected
    return {"trace": straight, "differences": differences}


def train_to(folder: Path, name: str, cut: int) -> None:
    """Train until a cut, which saves a checkpoint."""
    _train(folder, make_loader(name, 0), cut)


def find_refusal(folder: Path, name: str) -> dict[str, Any]:
    """Resume, and return the fields of the error."""
    try:
        _train(folder, make_loader(name, 0))
    except ConfigError as error:
        return {"component": error.component, "advice": error.suggestion.advice}
    return {}


def _train(folder: Path, loader: Any, cut: int | None = None) -> list[Any]:
    """Train from the last checkpoint to a cut or the end, and return the trace."""
    torch.manual_seed(0)
    model = Net()
    trace = Trace()
    stop = [] if cut is None else [StopAtHook(iter=cut)]
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        loss_fn=lambda predictions, noise: nn.functional.mse_loss(
            predictions, torch.as_tensor(noise).float().reshape(-1)
        ),
        hooks=[trace, "EMAHook", {"type": "CheckpointHook", "save_best": False}, *stop],
        drop_hooks=["LoggerHook", "ReportHook", "EvalHook"],
        max_epochs=2,
        work_dir=folder,
        seed=OTHER_SEED if (folder / "last.pth").exists() else SEED,
        resume="auto",
    )
    runner.train()
    return trace.rows
