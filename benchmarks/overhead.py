"""Measure the overhead of an iteration: Hookline against the same loop written by hand.

    python benchmarks/overhead.py [--blocks 1000] [--block 50] [--json FILE]

A tiny MLP (32-64-10), batch 32, one thread: small enough that every microsecond shows. All
contenders train at the same time, each in one thread, and take turns of about 25 milliseconds in
random order, so that a disturbance affects all of them. The CPU time of a turn is divided by that
of the bare loop in the same round.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks.builder import DEFAULT_HOOKS

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import TurnLoader, parts, ratio, take_turns


class Idle(BaseHook):
    """A hook with nothing to do in an iteration."""

    def before_run(self, runner):
        pass

    def after_epoch(self, runner):
        pass


def bare(loader: TurnLoader) -> None:
    model, optimizer, loss_fn = parts()
    model.train()
    for inputs, targets in loader:
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def hookline(loader: TurnLoader, *, idle: int = 0, minimal: bool = False) -> None:
    model, optimizer, loss_fn = parts()
    drop = [name for name in DEFAULT_HOOKS if name != "OptimizerHook"] if minimal else []
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(
            model,
            train_loader=loader,
            optimizer=optimizer,
            loss_fn=loss_fn,
            max_epochs=1,
            work_dir=folder,
            drop_hooks=drop,
            hooks=[Idle() for _ in range(idle)],
        )
        runner.train()


CONTENDERS: dict[str, Callable[[TurnLoader], None]] = {
    "bare loop": bare,
    "minimal (OptimizerHook)": lambda loader: hookline(loader, minimal=True),
    "default hooks": hookline,
    "default hooks + 10 idle": lambda loader: hookline(loader, idle=10),
}


def measure(blocks: int, block: int) -> dict[str, dict[str, float]]:
    """Return the microseconds per iteration and the ratio to the bare loop."""
    times = take_turns(CONTENDERS, blocks, block)
    return {name: ratio(values, times["bare loop"]) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=1000)
    parser.add_argument("--block", type=int, default=50, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    results = measure(arguments.blocks, arguments.block)
    setup = f"tiny MLP 32-64-10, batch 32, one thread, torch {torch.__version__}"
    print(f"{setup}; medians of {arguments.blocks} turns")
    print(f"{'':28}{'µs/iter':>9}{'ratio':>8}   quartiles")
    for name, row in results.items():
        print(f"{name:28}{row['us']:9.1f}{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
