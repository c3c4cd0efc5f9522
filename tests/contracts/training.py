"""Tiny real trainings, and what can be observed of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from hookline import HOOKS
from hookline.checkpoint import load_checkpoint
from hookline.engine import BaseRunner
from hookline.metrics import build_metrics
from tests.helpers import batches, make_runner


def train(folder: Path, *hooks: Any, **parts: Any) -> BaseRunner:
    """Train a two-layer model for two epochs of four batches, with these hooks and an optimizer's.

    `parts` are parts of the runner, in place of these or in addition.
    """
    built = [HOOKS.build(hook) for hook in hooks]
    parts = {"val_loader": batches(2, seed=1), "metrics": build_metrics(["accuracy"]), **parts}
    runner = make_runner(folder, *built, **parts)
    runner.train()
    return runner


class Scripted:
    """A metric with a given value for each validation; the last one is repeated."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def update(self, predictions: Any, targets: Any) -> None: ...

    def reset(self) -> None: ...

    def compute(self) -> float:
        return self.values.pop(0) if len(self.values) > 1 else self.values[0]


@contextmanager
def messages_of(hook: str, level: int = logging.INFO) -> Iterator[list[str]]:
    """Collect the log messages that begin with a hook's name."""
    collected: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message.startswith(hook):
                collected.append(message)

    logger = logging.getLogger("hookline")
    before = logger.level
    collector = Collector(level)
    logger.addHandler(collector)
    logger.setLevel(level)
    try:
        yield collected
    finally:
        logger.removeHandler(collector)
        logger.setLevel(before)


def files_below(folder: Path, pattern: str = "*") -> list[str]:
    """Return the names of all files below a folder."""
    paths = sorted(folder.rglob(pattern))
    return [path.relative_to(folder).as_posix() for path in paths if path.is_file()]


def weights_of(model: torch.nn.Module) -> dict[str, list[Any]]:
    """Return the state of a model as plain numbers."""
    return numbers(model.state_dict())


def numbers(tensors: dict[str, torch.Tensor]) -> dict[str, list[Any]]:
    """Return tensors as plain numbers."""
    return {name: tensor.tolist() for name, tensor in tensors.items()}


def saved_at(folder: Path, name: str) -> int:
    """Return the iteration that a checkpoint file holds."""
    iteration: int = load_checkpoint(folder / name)["meta"]["iter"]
    return iteration
