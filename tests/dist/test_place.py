"""What a run is said to be doing, asked in the midst of it."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookline import BaseHook, Runner
from hookline.engine.place import where


class Asked:
    """Where the run was, by who asked."""

    def __init__(self) -> None:
        self.place: Any = None
        self.answers: dict[str, str] = {}

    def __call__(self, who: str) -> None:
        if self.place is not None:
            self.answers.setdefault(who, self.place(None).text)


class Inner(BaseHook):
    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def before_train(self, runner: Any) -> None:
        self.asked.place = where(runner, threading.get_ident())

    def after_backward(self, runner: Any) -> None:  # which OptimizerHook calls, at its own site
        self.asked("hook")


class Data(Dataset):
    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        self.asked("data")
        return torch.ones(3), 0


class Model(nn.Module):
    def __init__(self, asked: Asked) -> None:
        super().__init__()
        self.asked, self.layer = asked, nn.Linear(3, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.asked("model")
        return self.layer(inputs)


def test_the_innermost_hook_is_named_or_what_the_loop_does(tmp_path):
    asked = Asked()
    model = Model(asked)
    Runner(
        model,
        train_loader=DataLoader(Data(asked), batch_size=2),
        optimizer=torch.optim.SGD(model.parameters(), 0.1),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1,
        hooks=[Inner(asked)],
        work_dir=tmp_path,
    ).train()
    assert asked.answers == {
        "data": "epoch 1, iteration 1, data loader",
        "model": "epoch 1, iteration 1, forward",
        "hook": "epoch 1, iteration 1, Inner at after_backward",
    }
