"""Compare the rate that a range test suggests with the best one of a grid, on five tasks.

    python benchmarks/lr_finder.py [--optimizers] [TASK …]

Each rate of the grid trains the same model from the same weights, for several epochs. The best rate
has the lowest mean loss over the last epoch. Neighbors in the grid differ by a factor of √10. The
exit code is 1 if a suggestion is more than one step away. With --optimizers, each task is trained
with each of three optimizers, which is harder.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from hookline.data import DATASETS, make_loader
from hookline.optim.range_test import range_test

GRID = [10 ** (exponent / 2) for exponent in range(-8, 2)]  # 1e-4 to 3.2
EPOCHS = 5
BATCH_SIZE = 32
SAMPLES = 1024

Batch = tuple[torch.Tensor, torch.Tensor]


class Task(NamedTuple):
    """A model, its data and its loss."""

    samples: list[Any]
    make_model: Callable[[], nn.Module]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: Callable[..., torch.optim.Optimizer]


def digits() -> Task:
    data = DATASETS.build({"type": "digits", "split": "train"})
    samples = [data[index] for index in range(SAMPLES)]
    size = samples[0][0].numel()

    def make_model() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 10))

    return Task(samples, make_model, functional.cross_entropy, torch.optim.SGD)


def rings() -> Task:
    angle = torch.rand(SAMPLES) * 2 * math.pi
    label = torch.arange(SAMPLES) % 2
    radius = 1 + label + 0.2 * torch.randn(SAMPLES)
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)

    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))

    samples = list(zip(points, label, strict=True))
    return Task(samples, make_model, functional.cross_entropy, torch.optim.Adam)


def regression() -> Task:
    inputs = torch.randn(SAMPLES, 8)
    targets = inputs @ torch.randn(8, 1) + torch.sin(inputs[:, :1])

    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))

    samples = list(zip(inputs, targets, strict=True))
    return Task(samples, make_model, functional.mse_loss, torch.optim.SGD)


def text() -> Task:
    """Predict the next character of a repeated sentence with some noise."""
    line = torch.tensor(list(b"the quick brown fox jumps over the lazy dog. ")) % 32
    stream = line.repeat(SAMPLES * 9 // len(line) + 1)[: SAMPLES * 9]
    noise = torch.rand(len(stream)) < 0.05
    stream = torch.where(noise, torch.randint(32, stream.shape), stream).view(SAMPLES, 9)

    def make_model() -> nn.Module:
        return nn.Sequential(
            nn.Embedding(32, 16), nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32)
        )

    samples = list(zip(stream[:, :8], stream[:, 8], strict=True))
    return Task(samples, make_model, functional.cross_entropy, torch.optim.Adam)


def segmentation() -> Task:
    """Find a bright disk in a noisy image."""
    grid = torch.stack(torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij"))
    centers = torch.randint(4, 12, (SAMPLES, 2, 1, 1))
    masks = ((grid - centers) ** 2).sum(1) < 12
    images = masks[:, None] + torch.randn(SAMPLES, 1, 16, 16)

    def make_model() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 2, 3, padding=1)
        )

    samples = list(zip(images, masks.long(), strict=True))
    return Task(samples, make_model, functional.cross_entropy, torch.optim.Adam)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "Adam": torch.optim.Adam,
}
TASKS = {each.__name__: each for each in (digits, rings, regression, text, segmentation)}


def train(task: Task, rate: float) -> float:
    """Train from the same weights; return the mean loss of the last epoch."""
    _, optimizer, step = build(task, rate)
    loader = make_loader(task.samples, BATCH_SIZE, shuffle=True, seed=0)
    losses: list[float] = []
    for epoch in range(EPOCHS):
        loader.set_epoch(epoch)
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            loss = step(batch)
            if not torch.isfinite(loss):
                return math.inf
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


def build(
    task: Task, rate: float
) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[Batch], torch.Tensor]]:
    torch.manual_seed(0)
    model = task.make_model()
    optimizer = task.optimizer(model.parameters(), lr=rate)
    return model, optimizer, lambda batch: task.loss(model(batch[0]), batch[1])


def suggest_rate(task: Task) -> float | None:
    """Return the suggestion of a range test with the defaults of `hookline lr-find`."""
    model, optimizer, step = build(task, GRID[0])
    loader = make_loader(task.samples, BATCH_SIZE, shuffle=True, seed=0)
    return range_test(model, optimizer, step, loader).suggestion()


class Comparison(NamedTuple):
    """The suggestion for a task, and the grid."""

    task: str
    optimizer: str
    suggestion: float | None
    losses: dict[float, float]

    @property
    def best(self) -> float:
        return min(self.losses, key=self.losses.__getitem__)

    @property
    def steps(self) -> float:
        """The distance from the best rate, in steps of the grid; negative if it is lower."""
        if self.suggestion is None:
            return math.inf
        return math.log10(self.suggestion / self.best) * 2

    def cells(self) -> list[str]:
        rate = "none" if self.suggestion is None else f"{self.suggestion:.1e}"
        steps = f"{self.steps:+.1f}"
        losses = [f"{loss:.3g}" for loss in self.losses.values()]
        return [self.task, self.optimizer, rate, f"{self.best:.1e}", steps, *losses]


def compare(name: str, optimizer: str | None = None) -> Comparison:
    """Compare on a task, with its own optimizer or with one of OPTIMIZERS."""
    torch.manual_seed(0)
    task = TASKS[name]()
    if optimizer is None:
        optimizer = next(key for key, value in OPTIMIZERS.items() if value is task.optimizer)
    task = task._replace(optimizer=OPTIMIZERS[optimizer])
    losses = {rate: train(task, rate) for rate in GRID}
    return Comparison(name, optimizer, suggest_rate(task), losses)


def format_table(comparisons: list[Comparison]) -> str:
    """Return a Markdown table with the loss of each rate of the grid."""
    rows = [["task", "optimizer", "suggested", "best", "steps", *(f"{rate:.0e}" for rate in GRID)]]
    rows += [each.cells() for each in comparisons]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(f"| {' | '.join(padded)} |")
    lines.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="TASK", help="the tasks; all by default")
    parser.add_argument("--optimizers", action="store_true", help="try each task with three")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # The models are too small for more.
    optimizers = list(OPTIMIZERS) if arguments.optimizers else [None]
    comparisons = [
        compare(name, optimizer) for name in arguments.names or TASKS for optimizer in optimizers
    ]
    print(format_table(comparisons))
    steps = [abs(each.steps) for each in comparisons]
    near = sum(each <= 1 for each in steps)
    print(f"{near} of {len(steps)} within one step; at most {max(steps):.1f} steps apart")
    return 0 if near == len(steps) else 1


if __name__ == "__main__":
    sys.exit(main())
