"""Draw the learning rate or momentum of the schedules' examples."""

from __future__ import annotations

import io
import tempfile
from typing import Any

import torch
from matplotlib.figure import Figure

from hookline import BaseHook, Runner
from hookline.hooks import LrUpdaterHook
from hookline.hooks.builder import DEFAULT_HOOKS
from scripts.docs.hook_docs import HookDoc

EPOCHS = 100
BATCHES = 20


class Recorder(BaseHook):
    """Record a value of the optimizer in every iteration."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.values: list[float] = []

    def after_forward(self, optimizer: torch.optim.Optimizer) -> None:
        self.values.append(float(optimizer.param_groups[0][self.key]))


def draw_curve(hook: HookDoc) -> str:
    """Return the schedule of a hook's example as SVG."""
    key = "lr" if issubclass(hook.cls, LrUpdaterHook) else "momentum"
    values = _schedule(hook.example_config(), Recorder(key))
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([index / BATCHES for index in range(len(values))], values, linewidth=1.5)
    axes.set_xlabel("epoch", fontsize=9)
    axes.set_ylabel(key, fontsize=9)
    axes.grid(alpha=0.3)
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def _schedule(config: Any, recorder: Recorder) -> list[float]:
    """Train a tiny model with a schedule and return the recorded values."""
    model = torch.nn.Linear(1, 1)
    batch = (torch.zeros(1, 1), torch.zeros(1, 1))
    with tempfile.TemporaryDirectory() as work_dir:
        runner = Runner(
            model,
            train_loader=[batch] * BATCHES,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
            loss_fn=torch.nn.MSELoss(),
            max_epochs=EPOCHS,
            hooks=[config, recorder],
            drop_hooks=[name for name in DEFAULT_HOOKS if name != "OptimizerHook"],
            work_dir=work_dir,
        )
        runner.train()
    return recorder.values
