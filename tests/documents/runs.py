"""Small real runs that the rows of a section share."""

from __future__ import annotations

import atexit
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import BaseHook, Runner
from hookline.engine import BaseRunner
from tests.helpers import batches, make_runner


@cache
def workspace() -> Path:
    """Return a directory that is removed at the end of the process."""
    folder = Path(tempfile.mkdtemp(prefix="hookline-documents-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def new_folder() -> Path:
    """Return a new directory in the workspace."""
    return Path(tempfile.mkdtemp(dir=workspace()))


def bare(*hooks: Any, folder: Path | None = None, **parts: Any) -> BaseRunner:
    """Train without default hooks, in two epochs of four iterations."""
    runner = make_runner(folder or new_folder(), *hooks, **parts)
    runner.train()
    return runner


def image_batches(count: int = 6, size: int = 4, seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.rand(size, 1, 8, 8, generator=generator),
            torch.randint(3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def image_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3)
    )


def full(*hooks: Any, folder: Path | None = None, **parts: Any) -> Runner:
    """Train on images with the default hooks, in two epochs of six iterations."""
    model = parts.pop("model", None) or image_model()
    settings = {
        "train_loader": image_batches(),
        "val_loader": image_batches(2, seed=1),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loss_fn": nn.CrossEntropyLoss(),
        "metrics": ["accuracy"],
        "max_epochs": 2,
        "work_dir": folder or new_folder(),
        **parts,
    }
    runner = Runner(model, hooks=hooks, **settings)
    runner.train()
    return runner


def log_rows(runner: BaseRunner, mode: str = "train") -> list[dict[str, Any]]:
    lines = (runner.work_dir / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["mode"] == mode]


def files(folder: Path, pattern: str = "*.pth") -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


@contextmanager
def messages() -> Iterator[list[str]]:
    """Collect the messages of the package's logger."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("hookline")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class Notes(BaseHook):
    """Notes the sites that are called, with the counters at that moment."""

    SITES = (
        "before_run",
        "after_run",
        "before_epoch",
        "after_epoch",
        "before_train_epoch",
        "after_train_epoch",
        "before_val_epoch",
        "after_val_epoch",
        "before_train_iter",
        "after_train_iter",
        "before_val_iter",
        "after_val_iter",
        "before_save_checkpoint",
        "after_load_checkpoint",
    )

    def __init__(self, label: str = "", log: list[Any] | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.label = label
        self.calls: list[Any] = [] if log is None else log


for _site in Notes.SITES:

    def _note(self: Notes, runner: BaseRunner, site: str = _site) -> None:
        self.calls.append((self.label, site) if self.label else (site, runner.epoch, runner.iter))

    setattr(Notes, _site, _note)


class Scores(BaseHook):
    """Sets the metrics of each validation, before other hooks read them."""

    priority = "LOWEST"

    def __init__(self, **values: list[float]) -> None:
        super().__init__()
        self.values = values
        self.count = 0

    def after_val_epoch(self, runner: BaseRunner) -> None:
        for name, values in self.values.items():
            runner.metrics[name] = values[self.count]
        self.count += 1


def validated(*hooks: Any, epochs: int = 3, **parts: Any) -> BaseRunner:
    """Train with a validation after each epoch."""
    return bare(*hooks, val_loader=batches(2, seed=1), max_epochs=epochs, **parts)
