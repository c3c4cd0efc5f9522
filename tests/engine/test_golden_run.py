"""Twenty seeded steps with known losses: a change that moves them must say why."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline import Runner, make_loader
from hookline.data import DATASETS
from hookline.engine import BaseHook

GOLDEN = [
    2.34092, 2.32142, 2.3278, 2.29972, 2.29682, 2.26918, 2.25095,
    2.22013, 2.20522, 2.20046, 2.17977, 2.10996, 2.10627, 2.09946,
    2.0494, 2.02416, 1.90971, 1.82783, 1.82353, 1.70644,
]  # fmt: skip


class Collect(BaseHook):
    def __init__(self) -> None:
        self.losses: list[float] = []

    def after_forward(self, loss):
        self.losses.append(loss.item())


def test_the_losses_of_twenty_steps_are_the_known_ones(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10)
    )
    collect = Collect()
    Runner(
        model,
        train_loader=make_loader(
            DATASETS.build({"type": "digits"}), batch_size=64, shuffle=True, seed=1
        ),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        loss_fn=nn.CrossEntropyLoss(),
        max_iters=20,
        seed=1,
        work_dir=tmp_path,
        hooks=[collect],
    ).train()
    assert collect.losses == pytest.approx(GOLDEN, rel=1e-4)
