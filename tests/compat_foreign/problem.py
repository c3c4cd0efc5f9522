"""One small problem that every framework is given: the same weights, the same batches in the same order, the same optimizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from hookline.engine import BaseRunner
from hookline.hooks import EvalHook, OptimizerHook

Batch = tuple[torch.Tensor, torch.Tensor]


def batches(count: int = 6, size: int = 8, seed: int = 0) -> list[Batch]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(size, 6, generator=generator), torch.randint(3, (size,), generator=generator))
        for _ in range(count)
    ]


def loader(data: list[Batch]) -> DataLoader[Any]:
    """The batches as a DataLoader, for frameworks that take nothing else."""
    return DataLoader(data, batch_size=None)  # type: ignore[arg-type]


class Net(nn.Module):
    """Labels are random, so that it learns the training data by heart and gets worse on the validation data."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.backbone = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))


def sgd(model: nn.Module, lr: float = 0.5) -> torch.optim.Optimizer:
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=lr)


class Accuracy:
    def reset(self) -> None:
        self.right = self.count = 0

    def update(self, preds: torch.Tensor, targets: torch.Tensor) -> None:
        self.right += int((preds.argmax(1) == targets).sum())
        self.count += len(targets)

    def compute(self) -> float:
        return self.right / self.count


def run_here(
    tmp_path: Path, *hooks: Any, epochs: int = 8, train: bool = True, **parts: Any
) -> BaseRunner:
    """The problem in Hookline, with hooks or callbacks of any framework; a bare runner, so that nothing else writes files."""
    model = parts.pop("model", None) or Net()
    optimizer = parts.pop("optimizer", None) or sgd(model)
    parts.setdefault("train_loader", batches())
    parts.setdefault("val_loader", batches(2, seed=1))
    parts.setdefault("loss_fn", nn.CrossEntropyLoss())
    owner = parts.pop("owner", None) or OptimizerHook()
    runner = BaseRunner(
        model,
        optimizer=optimizer,
        metrics={"accuracy": Accuracy()},
        max_epochs=epochs,
        work_dir=tmp_path,
        hooks=[owner, EvalHook(save_best=False), *hooks],
        **parts,
    )
    if train:
        runner.train()
    return runner


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(a == b and torch.allclose(x, y, atol=1e-6) for (a, x), (b, y) in pairs)
