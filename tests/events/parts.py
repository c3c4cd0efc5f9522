"""A small run on images, for tests of what it leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import BaseHook, Runner


def image_run(folder: Path, *hooks: Any, epochs: int = 2, **parts: Any) -> Runner:
    """Ten batches of four images an epoch; trained."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
    generator = torch.Generator().manual_seed(0)
    data = [
        (torch.randn(4, 1, 8, 8, generator=generator), torch.randint(3, (4,), generator=generator))
        for _ in range(10)
    ]
    parts = {"val_loader": data[:2], "metrics": ["accuracy"], **parts}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    runner = Runner(
        model,
        train_loader=data,
        optimizer=optimizer,
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=epochs,
        work_dir=folder,
        hooks=hooks,
        **parts,
    )
    runner.train()
    return runner


class PutEverything(BaseHook):
    """One of each kind of content, in the first iteration."""

    def after_train_iter(self, runner):
        if runner.iter == 0:
            runner.events.put_image("pictures/ramp", torch.linspace(0, 1, 64).reshape(8, 8))
            runner.events.put_histogram("numbers", torch.arange(100.0))
            runner.events.put_text("note", "a <b>note</b>")
            path = runner.work_dir / "result.txt"
            path.write_text("a result")
            runner.events.put_artifact("results/result.txt", path)


class BreakAt(BaseHook):
    """Fails, as runs do."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def after_forward(self, runner):
        if runner.iter == self.iteration:
            raise RuntimeError("broken")
