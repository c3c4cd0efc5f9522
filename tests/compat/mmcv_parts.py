"""A small model, data set and runner as MMCV's users write them."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hookline.compat.mmcv.runner import EpochBasedRunner, IterBasedRunner

LOGGER = logging.getLogger("mmcv.test")


class Points(Dataset):
    """Points on a line, with MMCV's `evaluate`."""

    def __init__(self, count: int = 24, seed: int = 0, noisy: bool = False) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 4, generator=generator)
        self.y = (self.x.sum(1) > 0).long()
        self.noisy = noisy

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> dict[str, Any]:
        noise = 0.01 * torch.randn(4) if self.noisy else 0.0
        return {"x": self.x[index] + noise, "y": self.y[index]}

    def evaluate(
        self, results: list[Any], logger: Any = None, scale: float = 1.0
    ) -> dict[str, float]:
        right = sum(
            int(result.argmax()) == int(label)
            for result, label in zip(results, self.y, strict=True)
        )
        return {"acc": scale * right / len(self.y), "loss": 1 - right / len(self.y)}


class Classifier(nn.Module):
    def __init__(self, bn: bool = False) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 8),
            *([nn.BatchNorm1d(8)] if bn else []),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(8, 2),
        )

    def forward(self, x, y=None, return_loss=True):
        scores = self.net(x)
        return nn.functional.cross_entropy(scores, y) if return_loss else list(scores)

    def train_step(self, data, optimizer, **kwargs):
        loss = self(**data)
        return {"loss": loss, "log_vars": {"loss": loss.item()}, "num_samples": len(data["x"])}

    val_step = train_step


def make_runner(
    work_dir: Any,
    cls: type = EpochBasedRunner,
    model: nn.Module | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> Any:
    torch.manual_seed(seed)
    model = model or Classifier()
    optimizer = kwargs.pop("optimizer", None) or torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9
    )
    length = (
        {"max_epochs": 2}
        if issubclass(cls, EpochBasedRunner)
        else {"max_iters": 12}
        if issubclass(cls, IterBasedRunner)
        else {}
    )
    length = {} if "max_epochs" in kwargs or "max_iters" in kwargs else length
    given = {"logger": LOGGER, "meta": {}, **kwargs}
    return cls(
        model,
        optimizer=optimizer,
        work_dir=None if work_dir is None else str(work_dir),
        **length,
        **given,
    )


def loader(noisy: bool = False, shuffle: bool = True, **options: Any) -> DataLoader:
    return DataLoader(Points(noisy=noisy), batch_size=4, shuffle=shuffle, **options)


def weights(runner: Any) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in runner.model.state_dict().items()}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [key for key in one if not torch.equal(one[key], other[key])] == []
