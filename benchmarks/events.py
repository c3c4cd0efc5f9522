"""Measure the cost of logging: of the default hooks in an iteration, and over a long run.

    python benchmarks/events.py [--turns 500] [--iters 300000] [--json FILE]

First the default hooks with and without LoggerHook take turns on the tiny MLP of `overhead.py`, in
five processes one after another; a turn is one interval, so that each includes a report. Then a run
that records six scalars in each iteration, and is in its last tenth, takes turns with one in its
first tenth.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import pickle
import sys
import tempfile
from operator import itemgetter
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import nn

from hookline import BaseHook, Runner

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import WARM_UP, TurnLoader, parts, ratio, take_turns

INTERVAL = 50
PROCESSES = 5
SCALARS = 6


def default_hooks(loader: TurnLoader, *, logging_too: bool) -> None:
    model, optimizer, loss_fn = parts()
    drop = [] if logging_too else ["LoggerHook"]
    with tempfile.TemporaryDirectory() as folder:
        part = {
            "train_loader": loader,
            "optimizer": optimizer,
            "loss_fn": loss_fn,
            "work_dir": folder,
            "drop_hooks": drop,
        }
        Runner(model, max_epochs=1, **part).train()


def measure_logging(turns: int) -> dict[str, float]:
    """Return the microseconds per iteration with logging, and the ratio to the same without."""
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    contenders = {
        "without": lambda loader: default_hooks(loader, logging_too=False),
        "with": lambda loader: default_hooks(loader, logging_too=True),
    }
    times = take_turns(contenders, turns, INTERVAL)
    return ratio(times["with"], times["without"])


class Records(BaseHook):
    """Records three scalars per iteration; LoggerHook and the timer record three more."""

    def __init__(self, tenth: int) -> None:
        self.tenth, self.kept = tenth, []

    def after_train_iter(self, runner):
        loss = runner.outputs["loss"]
        for name in ("one", "two", "three"):
            runner.events.put_scalar(name, loss)
        if (runner.iter + 1) % self.tenth == 0:
            memory = psutil.Process().memory_info().rss / 2**20
            self.kept.append(
                {"rss_mb": memory, "state_kb": len(pickle.dumps(runner.events.state_dict())) / 1000}
            )


def recording_run(loader: TurnLoader, records: Records) -> None:
    torch.manual_seed(0)
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        part = {
            "train_loader": loader,
            "optimizer": optimizer,
            "loss_fn": nn.CrossEntropyLoss(),
            "max_epochs": 1,
            "hooks": [records],
        }
        Runner(model, work_dir=folder, **part).train()


def growth(iters: int) -> dict[str, Any]:
    """Compare iterations in the last tenth of a run with those in the first tenth of another.

    The result also has the memory and the size of the state of the long run.
    """
    tenth = iters // 10
    old, fresh = Records(tenth), Records(tenth)
    contenders = {
        "first": lambda loader: recording_run(loader, fresh),
        "last": lambda loader: recording_run(loader, old),
    }
    times = take_turns(
        contenders, tenth // INTERVAL - WARM_UP, INTERVAL, before={"last": iters - tenth}
    )
    return {
        "first": ratio(times["first"], times["first"]),
        "last": ratio(times["last"], times["first"]),
        "kept": old.kept,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--iters", type=int, default=300_000)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    # Each measurement has a new process, because the memory layout affects the times.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        costs = pool.map(measure_logging, [arguments.turns] * PROCESSES, chunksize=1)
    costs = sorted(costs, key=itemgetter("ratio"))
    cost = costs[PROCESSES // 2]
    print(
        f"default logging: {cost['us']:.1f} µs/iteration, {cost['ratio']:.3f} of the same without"
    )
    ratios = ", ".join(f"{each['ratio']:.3f}" for each in costs)
    print(f"({ratios}; quartiles of the turns {cost['low']:.3f}–{cost['high']:.3f})")
    found = growth(arguments.iters)
    last, kept = found["last"], found["kept"]
    print(
        f"{arguments.iters} iterations with {SCALARS} scalars: "
        f"{found['first']['us']:.1f} µs/iteration at first, {last['us']:.1f} last"
    )
    print(f"last tenth / first: {last['ratio']:.3f} ({last['low']:.3f}–{last['high']:.3f})")
    for name, unit in (("rss_mb", "MB of memory"), ("state_kb", "kB in a checkpoint")):
        growth_of_run = kept[-1][name] - kept[0][name]
        print(f"{kept[0][name]:.1f} {unit} after the first tenth, {growth_of_run:+.1f} at the end")
    if arguments.json:
        arguments.json.write_text(json.dumps({"default": cost, "growth": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
