"""Measure whether the cost of an iteration grows with the number of hooks, or over a long run.

    python benchmarks/growth.py [--turns 60] [--long] [--json FILE]

First the tiny MLP of `overhead.py` takes turns with 1, 10 and 100 hooks that have nothing to do in
an iteration, and with as many that have an empty method there. Then one long run with the default
hooks (100 thousand iterations, or a million with `--long`) pauses at marks to train a bare loop for
comparison: the ratio should be the same at each mark.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import BaseHook, Runner

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import TurnLoader, parts, ratio, take_turns

COUNTS = (1, 10, 100)
MARKS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
WINDOW = 2000  # iterations before each mark that are measured
PIECE = 100  # iterations of one measurement


class Idle(BaseHook):
    """A hook with nothing to do in an iteration."""

    def before_run(self, runner: Any) -> None:
        pass


class Empty(BaseHook):
    """A hook with a method that is called in each iteration and does nothing."""

    def after_train_iter(self, runner: Any) -> None:
        pass


def with_hooks(loader: TurnLoader, *, kind: type[BaseHook], count: int) -> None:
    model, optimizer, loss_fn = parts()
    hooks = [kind() for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        part = {
            "train_loader": loader,
            "optimizer": optimizer,
            "loss_fn": loss_fn,
            "work_dir": folder,
            "hooks": hooks,
        }
        Runner(model, max_epochs=1, **part).train()


def over_hooks(turns: int) -> dict[str, dict[str, float]]:
    """Return the microseconds per iteration, and the ratio to the default hooks alone."""
    contenders: dict[str, Callable[[TurnLoader], None]] = {
        "default hooks": partial(with_hooks, kind=Idle, count=0)
    }
    for kind, label in ((Idle, "idle"), (Empty, "empty")):
        contenders |= {
            f"+ {count} {label}": partial(with_hooks, kind=kind, count=count) for count in COUNTS
        }
    times = take_turns(contenders, turns, 50)
    return {name: ratio(values, times["default hooks"]) for name, values in times.items()}


class Batches:
    def __init__(self, count: int) -> None:
        self.count, self._batch = count, (torch.ones(8, 8), torch.zeros(8, 8))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.count):
            yield self._batch


class AtMarks(BaseHook):
    """Times pieces of the run before each mark, and after each piece a bare loop as long."""

    priority = "LOWEST"

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, float]] = {}
        self._ours: list[float] = []
        self._bare: list[float] = []
        self._loop = bare_loop()
        self._started = 0.0

    def before_train_iter(self, runner: Any) -> None:
        done = runner.iter
        mark = next((mark for mark in MARKS if mark - WINDOW <= done <= mark), None)
        if mark is None or (done - mark) % PIECE:
            return
        if done > mark - WINDOW:
            self._ours.append((time.thread_time() - self._started) / PIECE * 1e6)
            started = time.thread_time()
            self._loop(PIECE)
            self._bare.append((time.thread_time() - started) / PIECE * 1e6)
        if done == mark:
            self.rows[mark] = ratio(self._ours, self._bare)
            self._ours, self._bare = [], []
        self._started = time.thread_time()


def small() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module]:
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    return model, torch.optim.SGD(model.parameters(), lr=1e-6), nn.MSELoss()


def bare_loop() -> Callable[[int], None]:
    model, optimizer, loss_fn = small()

    def train(iterations: int) -> None:
        for inputs, targets in Batches(iterations):
            loss = loss_fn(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return train


def over_iterations(last: int) -> dict[str, dict[str, float]]:
    """Return, by mark, the microseconds per iteration and the ratio to a bare loop."""
    model, optimizer, loss_fn = small()
    at_marks = AtMarks()
    with tempfile.TemporaryDirectory() as folder:
        part = {
            "train_loader": Batches(last + 1),
            "optimizer": optimizer,
            "loss_fn": loss_fn,
            "work_dir": folder,
            "hooks": [at_marks],
        }
        Runner(model, max_epochs=1, **part).train()
    return {str(mark): row for mark, row in at_marks.rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--long", action="store_true", help="a million iterations")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    results = {
        "hooks": over_hooks(arguments.turns),
        "iterations": over_iterations(MARKS[-1] if arguments.long else 100_000),
    }
    for title, rows in results.items():
        print(f"{title:28}{'µs/iter':>9}{'ratio':>8}   quartiles")
        for name, row in rows.items():
            print(
                f"{name:28}{row['us']:9.1f}{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}"
            )
    marks = [row["ratio"] for row in results["iterations"].values()]
    median = statistics.median(marks)
    print(f"last mark / first: {marks[-1] / marks[0]:.3f}; median over marks {median:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
