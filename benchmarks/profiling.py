"""Measure the cost of profiling: sampled hook costs, and all measuring hooks, against none.

    python benchmarks/profiling.py [--blocks 150] [--json FILE]

The first on a tiny MLP (32-64-10, batch 32), where every microsecond shows; the second on a small
CNN (3x32x32, batch 64). Every iteration is timed too, which shows the cost of timing one more
clearly: sampling times one of 31. One thread. The contenders take turns of a few milliseconds, see
turns.py.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import Runner

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import TurnLoader, parts, ratio, take_turns

MEASURING = (
    "IterTimerHook",
    "MemoryProfilerHook",
    "TimeTrackingHook",
    "SystemMonitorHook",
    "ThroughputHook",
)
BLOCK = 62  # twice the distance of two timed iterations, so that each turn has two of them


class IdleObserver:
    """An observer that does nothing; with it, every iteration is timed."""

    def before_iteration(self, runner: Any) -> None:
        pass

    def begin(self, kind: str, name: str) -> None:
        pass

    def end(self) -> None:
        pass


def train(
    loader: TurnLoader,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_fn: nn.Module,
    timing: str,
    **options: Any,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(
            model,
            train_loader=loader,
            optimizer=optimizer,
            loss_fn=loss_fn,
            max_epochs=1,
            work_dir=folder,
            **options,
        )
        if timing == "all":
            runner.sites.costs.add_observer(IdleObserver())
        if timing == "none":
            costs: Any = runner.sites.costs
            costs.begin_training = lambda runner: None  # no iteration is ever due
        runner.train()


def tiny(timing: str) -> Callable[[TurnLoader], None]:
    return lambda loader: train(loader, *parts(), timing=timing)


def small_cnn(hooks: tuple[str, ...]) -> Callable[[TurnLoader], None]:
    def run(loader: TurnLoader) -> None:
        torch.manual_seed(0)
        body = [
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        model = nn.Sequential(*body, nn.Flatten(), nn.Linear(32 * 64, 10))
        loader._batches = [(torch.randn(64, 3, 32, 32), torch.randint(10, (64,))) for _ in range(8)]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        drop = () if "IterTimerHook" in hooks else ("IterTimerHook",)
        chosen = [{"type": name} for name in hooks]
        train(
            loader,
            model,
            optimizer,
            nn.CrossEntropyLoss(),
            timing="sample" if hooks else "none",
            hooks=chosen,
            drop_hooks=drop,
        )

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=150)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    pairs = {
        "tiny MLP, hook costs sampled": (tiny("none"), tiny("sample"), BLOCK),
        "tiny MLP, every iteration timed": (tiny("none"), tiny("all"), BLOCK),
        "small CNN, all measuring hooks": (small_cnn(()), small_cnn(MEASURING), 10),
    }
    print(f"one thread, torch {torch.__version__}; medians of {arguments.blocks} turns")
    print(f"{'':32}{'µs/iter':>9}{'ratio':>8}   quartiles")
    results = {}
    for name, (without, with_it, block) in pairs.items():
        times = take_turns({"without": without, "with": with_it}, arguments.blocks, block)
        results[name] = row = ratio(times["with"], times["without"])
        print(f"{name:32}{row['us']:9.1f}{row['ratio']:8.4f}   {row['low']:.4f}–{row['high']:.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
