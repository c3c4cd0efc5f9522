"""Parts that a user might have written, to be named by their dotted path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset

from hookline.errors import ConfigError
from hookline.hooks import BaseHook


class Net(nn.Module):
    def __init__(self, num_classes: int, depth: int = 1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.LazyLinear(8),
            *[nn.Linear(8, 8) for _ in range(depth)],
            nn.Linear(8, num_classes),
        )
        self.layers(torch.zeros(1, 1, 8, 8))


class Numbers(Dataset[Any]):
    """A data set without splits and without any word about itself."""

    def __init__(self, length: int = 10) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((1, 8, 8), float(index)), index % 2


class Words(Dataset[Any]):
    """Samples of different lengths."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.ones(index + 1), index % 2


def padded(samples: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    texts, labels = zip(*samples, strict=True)
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), torch.tensor(labels)


def labels(samples: list[Any]) -> list[int]:
    return [label for _, label in samples]


class Count:
    """A metric."""

    def reset(self) -> None:
        self.count = 0

    def update(self, preds: Any, targets: Any) -> None:
        self.count += len(targets)

    def compute(self) -> int:
        return self.count


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(Numbers()[index] for index in range(10))


@dataclass
class PatientHook(BaseHook):
    """Waits."""

    patience: int = 3
    token: int = 0


class Misspelt(BaseHook):
    def after_train_itr(self, runner: Any) -> None: ...


class Unknowing(BaseHook):
    def after_train_iter(self, lss: Any) -> None: ...


class Measures(Numbers):
    """Targets that are measured, not counted."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((1, 8, 8), float(index)), torch.tensor([float(index), 1.0])


class Regressor(Net):
    def forward(self, inputs: torch.Tensor) -> Any:
        return self.layers(inputs)


@dataclass
class Choosy(BaseHook):
    """Checks its parameters when training begins, and takes nothing but the epoch."""

    size: int
    color: str

    def before_train(self, *, epoch: int) -> None:
        if self.color == "red":
            raise ConfigError("there is no such color", component=self.name, parameter="color")
        assert epoch // self.size == 0


class Picky(BaseHook):
    """Raises a plain error, which has no fields."""

    def __init__(self, size: int) -> None:
        raise ValueError(f"the size {size} is wrong")


class Drawing(BaseHook):
    def __init__(self) -> None:
        self.drawn = torch.rand(()).item()
