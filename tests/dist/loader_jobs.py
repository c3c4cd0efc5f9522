"""Train with many kinds of loaders, interrupted and not, in one process of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import StopAtHook
from tests.data.loaders import MAP_STYLE, OTHERS, STREAMS

CUTS = (5, 9)


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


def train_part(folder: Path, name: str, cut: int | None = None) -> dict[str, Any]:
    """Train with one kind of loader, from the last checkpoint on; return the trace and weights."""
    make = OTHERS[name] if name in OTHERS else lambda: MAP_STYLE[name](0)
    rows, weights = _train(folder / "run", make, cut)
    return {"rows": rows, "weights": weights}


def compare_all(folder: Path, num_workers: int = 0) -> list[str]:
    """Return the kinds of loaders with which an interrupted run differs from a straight one."""
    kinds: dict[str, Any] = {**MAP_STYLE, **STREAMS}
    makers = {name: (lambda make=make: make(num_workers)) for name, make in kinds.items()}
    if not num_workers:
        makers["stateful loader without length"] = OTHERS["stateful loader without length"]
    differing = []
    for number, (name, make) in enumerate(makers.items()):
        straight = _train(folder / f"{number}-straight", make)
        rows: list[Any] = []
        for cut in (*CUTS, None):
            part, weights = _train(folder / f"{number}-cut", make, cut)
            rows += part
        if rows != straight[0] or not _are_equal(weights, straight[1]):
            differing.append(name)
    return differing


def _train(folder: Path, make: Any, cut: int | None = None) -> tuple[list[Any], dict[str, Tensor]]:
    torch.manual_seed(0)
    model = Net()
    trace = Trace()
    stop = [] if cut is None else [StopAtHook(iter=cut)]
    runner = Runner(
        model,
        train_loader=make(),
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        loss_fn=lambda predictions, noise: nn.functional.mse_loss(
            predictions, torch.as_tensor(noise).float().reshape(-1)
        ),
        hooks=[trace, {"type": "CheckpointHook", "save_best": False}, *stop],
        drop_hooks=["LoggerHook", "ReportHook", "EvalHook"],
        max_epochs=2,
        work_dir=folder,
        seed=12 if (folder / "last.pth").exists() else 11,
        resume="auto",
    )
    runner.train()
    return trace.rows, {name: value.clone() for name, value in model.state_dict().items()}


def _are_equal(weights: dict[str, Tensor], others: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, others[name]) for name, value in weights.items())
