"""What logging costs: of the default hooks in an iteration, and over a long run.

    python benchmarks/events.py [--turns 150] [--iters 300000] [--json FILE]

First the default hooks with and without LoggerHook take turns on the tiny MLP of `overhead.py`; a turn is one interval, so that each holds
a report. Then one run records six scalars in each of its iterations, and its first tenth is compared with its last.
"""

from __future__ import annotations

import argparse
import json
import logging
import pickle
import sys
import tempfile
import time
from pathlib import Path

import psutil
import torch
from torch import nn

from hookline import BaseHook, Runner

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import TurnLoader, parts, ratio, take_turns

INTERVAL = 50
SCALARS = 6


def default_hooks(loader: TurnLoader, *, logging_too: bool) -> None:
    model, optimizer, loss_fn = parts()
    drop = [] if logging_too else ["LoggerHook"]
    with tempfile.TemporaryDirectory() as folder:
        part = {"train_loader": loader, "optimizer": optimizer, "loss_fn": loss_fn, "work_dir": folder, "drop_hooks": drop}
        Runner(model, max_epochs=1, **part).train()


def cost_of_default_logging(turns: int) -> dict[str, float]:
    """Microseconds per iteration with logging, and the ratio to the same without."""
    contenders = {
        "without": lambda loader: default_hooks(loader, logging_too=False),
        "with": lambda loader: default_hooks(loader, logging_too=True),
    }
    times = take_turns(contenders, turns, INTERVAL)
    return ratio(times["with"], times["without"])


class Records(BaseHook):
    """With LoggerHook's loss and the timer's two that makes six scalars an iteration; notes cost and memory tenth by tenth."""

    def __init__(self, tenth: int) -> None:
        self.tenth, self.rows = tenth, []

    def before_train(self, runner):
        self._started = time.process_time()

    def after_train_iter(self, runner):
        loss = runner.outputs["loss"]
        for name in ("one", "two", "three"):
            runner.events.put_scalar(name, loss)
        if (runner.iter + 1) % self.tenth == 0:
            seconds, memory = time.process_time() - self._started, psutil.Process().memory_info().rss / 2**20
            kept = len(pickle.dumps(runner.events.state_dict())) / 1000
            self.rows.append({"us": seconds / self.tenth * 1e6, "rss_mb": memory, "state_kb": kept})
            self._started = time.process_time()


class Batches:
    def __init__(self, count: int) -> None:
        self.count = count
        self._batch = torch.ones(1, 1), torch.zeros(1, 1)

    def __len__(self) -> int:
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            yield self._batch


def long_run(iters: int) -> list[dict[str, float]]:
    """Microseconds per iteration, memory, and size of what a checkpoint keeps of the events, for each tenth of a run."""
    torch.manual_seed(0)
    model, records = nn.Linear(1, 1), Records(iters // 10)
    with tempfile.TemporaryDirectory() as folder:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        part = {"train_loader": Batches(iters), "optimizer": optimizer, "loss_fn": nn.MSELoss(), "max_epochs": 1, "hooks": [records]}
        Runner(model, work_dir=folder, **part).train()
    return records.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--iters", type=int, default=300_000)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    cost = cost_of_default_logging(arguments.turns)
    print(f"default logging: {cost['us']:.1f} µs/iteration, {cost['ratio']:.3f} of the same without ({cost['low']:.3f}–{cost['high']:.3f})")
    tenths = long_run(arguments.iters)
    print(f"{arguments.iters} iterations with {SCALARS} scalars, tenth by tenth:\n{'µs/iter':>9}{'RSS MB':>9}{'kept kB':>9}")
    for row in tenths:
        print(f"{row['us']:9.1f}{row['rss_mb']:9.1f}{row['state_kb']:9.1f}")
    first, last = tenths[0], tenths[-1]
    growth = last["state_kb"] - first["state_kb"]
    print(f"last tenth / first: {last['us'] / first['us']:.3f}; memory {last['rss_mb'] - first['rss_mb']:+.1f} MB; kept {growth:+.1f} kB")
    if arguments.json:
        arguments.json.write_text(json.dumps({"default": cost, "tenths": tenths}, indent=2) + "\n")


if __name__ == "__main__":
    main()
