"""Small real parts for tests of MMEngine's names: a model, data, a metric, and what a Runner is given."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset

from hookline.compat.mmengine.evaluator import BaseMetric
from hookline.compat.mmengine.model import BaseModel
from hookline.compat.mmengine.runner import Runner

NUMBERS = itertools.count()


class Net(BaseModel):
    """Gives losses, predictions or tensors by mode; its dropout makes random numbers matter."""

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3))

    def forward(self, inputs: Any, labels: Any = None, mode: str = "tensor") -> Any:
        out = self.fc(inputs)
        if mode == "loss":
            return {"loss": F.cross_entropy(out, labels)}
        return (out, labels) if mode == "predict" else out


class Accuracy(BaseMetric):
    """`accuracy`, under a prefix if one is given."""

    def process(self, data_batch: Any, data_samples: Any) -> None:
        out, labels = data_samples
        self.results.append((int((out.argmax(1) == labels).sum()), len(labels)))

    def compute_metrics(self, results: list[Any]) -> dict[str, float]:
        return {"accuracy": sum(right for right, _ in results) / sum(count for _, count in results)}


def data(count: int = 32, seed: int = 0) -> TensorDataset:
    inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, inputs[:, :3].argmax(1))


def loader(
    dataset: Any = None, shuffle: bool = True, batch_size: int = 8, sampler: str = "DefaultSampler"
) -> dict[str, Any]:
    return {
        "batch_size": batch_size,
        "num_workers": 0,
        "sampler": {"type": sampler, "shuffle": shuffle},
        "dataset": data() if dataset is None else dataset,
        "collate_fn": {"type": "default_collate"},
    }


def parts(work_dir: str | Path, epochs: int = 2, **changes: Any) -> dict[str, Any]:
    """What `Runner(**parts(tmp_path))` trains, validates and tests with."""
    torch.manual_seed(0)
    given = {
        "model": Net(),
        "work_dir": str(work_dir),
        # MMEngine's own runners of the same second would share a logger.
        "experiment_name": f"run_{next(NUMBERS)}",
        "train_dataloader": loader(),
        "val_dataloader": loader(data(16, 1), shuffle=False),
        "test_dataloader": loader(data(16, 2), shuffle=False),
        "train_cfg": {"by_epoch": True, "max_epochs": epochs, "val_interval": 1},
        "val_cfg": {},
        "test_cfg": {},
        "val_evaluator": {"type": Accuracy},
        "test_evaluator": {"type": Accuracy},
        "optim_wrapper": {"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
        "randomness": {"seed": 0},
        "log_level": "WARNING",
    }
    return {**given, **changes}


def make_runner(work_dir: str | Path, epochs: int = 2, **changes: Any) -> Runner:
    return Runner(**parts(work_dir, epochs, **changes))
