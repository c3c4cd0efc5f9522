"""The small problem that every host trains on: the same weights, batches, optimizer and metric."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset

EPOCHS = 2
LENGTH = 4  # batches of an epoch
SIZE = 5  # samples of a batch
CLASSES = 3


class Images(Dataset[Any]):
    """Random images with random labels.

    Args:
        split: `train`, `val` or `test`; each has its own images.
        repeats: How often the images follow each other.
        is_spoiled: Whether the third batch of each epoch is NaN.
    """

    def __init__(self, split: str = "train", repeats: int = 1, is_spoiled: bool = False) -> None:
        count = SIZE * (LENGTH if split == "train" else 2)
        generator = torch.Generator().manual_seed(["train", "val", "test"].index(split))
        inputs = torch.rand(count, 1, 8, 8, generator=generator)
        targets = torch.randint(CLASSES, (count,), generator=generator)
        if is_spoiled:
            inputs[2 * SIZE : 3 * SIZE] = torch.nan
        self.inputs = torch.cat([inputs] * repeats)
        self.targets = torch.cat([targets] * repeats)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.targets[index]


class Batches(list[Any]):
    """The batches of a data set, in its order. Reading them draws no random numbers."""

    def __init__(self, dataset: Images) -> None:
        starts = range(0, len(dataset), SIZE)
        super().__init__(dataset[start : start + SIZE] for start in starts)
        self.dataset = dataset


def train_images(hook: str, repeats: int = 1) -> Images:
    """Return the training data for a hook; RollbackHook needs a batch that is bad."""
    return Images(repeats=repeats, is_spoiled=hook == "RollbackHook")


def train_batches(hook: str, repeats: int = 1) -> Batches:
    """Return the batches of the training data for a hook."""
    return Batches(train_images(hook, repeats))


class Network(nn.Module):
    """A convolution, batch norm and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(144, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(inputs))


class Attention(nn.Module):
    """A layer with attention over the patches of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 8, 2, 2)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(inputs).flatten(2).transpose(1, 2)
        return self.head(self.layer(tokens).mean(1))


def make_model(hook: str, interface: type | None = None) -> nn.Module:
    """Return the model that a hook is trained with: one with attention if it draws that.

    Args:
        hook: The hook's name.
        interface: A class with the methods that a host expects of its models.
    """
    kind = Attention if hook == "AttentionMapHook" else Network
    if interface is not None:
        kind = type(kind.__name__, (interface, kind), {})
    torch.manual_seed(1)
    return kind()


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def make_scheduler(hook: str, optimizer: torch.optim.Optimizer) -> Any:
    """Return the scheduler that a hook steps, if it needs one from the runner."""
    if hook != "ParamSchedulerHook":
        return None
    return torch.optim.lr_scheduler.StepLR(optimizer, 2)


def measure(model: nn.Module, batches: Any) -> dict[str, float]:
    """Return the metrics of a model, as a user's own validation computes them."""
    right = 0
    count = 0
    loss = 0.0
    with torch.no_grad():
        for inputs, targets in batches:
            scores = model(inputs)
            right += int((scores.argmax(1) == targets).sum())
            count += len(targets)
            loss += float(nn.functional.cross_entropy(scores, targets)) * len(targets)
    return {"accuracy": right / count, "val_loss": loss / count}
