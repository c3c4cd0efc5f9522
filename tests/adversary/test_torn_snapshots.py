"""Code that changes weights while a checkpoint is written, past the versions of tensors."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from hookline import Runner
from hookline.checkpoint import CheckpointStore
from hookline.engine import BaseHook

WIDTH = 600


class Changing(nn.Module):
    """A model whose forward changes its weights in a way that autograd does not see."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.outer = nn.Linear(WIDTH, 3)
        self.register_buffer("table", torch.zeros(WIDTH, WIDTH))
        self.way = way
        if way == "hook":
            self.inner.register_forward_hook(change_weight)
        elif way == "parametrization":
            parametrize.register_parametrization(self.inner, "weight", Shrinking())
        elif way == "view":
            self.view = self.table.numpy()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if self.training and self.way == "data":
            self.inner.weight.data.add_(1e-3)
        elif self.training and self.way == "numpy":
            self.inner.weight.detach().numpy()[...] += 1e-3
        elif self.training and self.way == "view":
            self.view += 1
        elif self.training and self.way == "buffer":
            self.table.add_(1)
        elif self.training and self.way == "no_grad":
            with torch.no_grad():
                self.inner.weight.clamp_(-0.03, 0.03)
        outputs: torch.Tensor = self.outer(self.inner(inputs))
        return outputs


class Shrinking(nn.Module):
    """A parametrization that changes the original weight each time it is read."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        weight.data.mul_(0.999)
        return weight


def change_weight(module: nn.Linear, inputs: Any, output: Any) -> None:
    module.weight.data.add_(1e-3)


class Remember(BaseHook):
    """Keeps the weights at each save."""

    def __init__(self) -> None:
        self.weights: dict[int, Any] = {}

    def after_save_checkpoint(self, runner: Runner) -> None:
        self.weights[runner.iter] = copy.deepcopy(runner.model.state_dict())


@pytest.mark.parametrize(
    "way", ["data", "numpy", "no_grad", "hook", "parametrization", "view", "buffer"]
)
def test_a_snapshot_is_not_torn_by_a_forward_that_changes_weights(tmp_path: Path, way: str) -> None:
    model = Changing(way)
    remember = Remember()
    batches = [(torch.randn(4, WIDTH), torch.randint(3, (4,))) for _ in range(5)]
    save = {"type": "CheckpointHook", "interval": 1, "by_epoch": False, "max_keep_ckpts": -1}
    Runner(
        model, train_loader=batches, optimizer=torch.optim.SGD(model.parameters(), lr=0.01), loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1, work_dir=tmp_path, hooks=[remember, save], drop_hooks=["LoggerHook", "ReportHook"],
    ).train()  # fmt: skip
    store = CheckpointStore(tmp_path)
    assert len(store.entries()) == 5
    for entry in store.entries():
        for name, value in store.load(entry)["state_dict"].items():
            assert torch.equal(value, remember.weights[entry.step][name]), (entry.name, name)
