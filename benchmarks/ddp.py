"""Measure the cost of a step of two processes: Hookline against DDP written by hand.

    python benchmarks/ddp.py [--blocks 400] [--block 50] [--json FILE]

Two gloo processes on this machine train a tiny MLP (32-64-10), batch 32 and one thread each. Both
contenders run in the same two processes and take turns of a few dozen milliseconds, in the same
random order, so that a disturbance affects both. The times are wall-clock times, because a step
mostly waits for the other process. "step" is a run with OptimizerHook alone, which does the work of
the loop by hand; "default hooks" also logs, times, saves and reports.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import TurnLoader, parts, ratio, take_turns
from hookline import Runner
from hookline.dist import connect, disconnect
from hookline.hooks.builder import DEFAULT_HOOKS


def by_hand(loader: TurnLoader, group: Any) -> None:
    model, optimizer, loss_fn = parts()
    model = DistributedDataParallel(model, process_group=group)
    model.train()
    for inputs, targets in loader:
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def hookline(loader: TurnLoader, folder: str, drop: Sequence[str]) -> None:
    model, optimizer, loss_fn = parts()
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=optimizer,
        loss_fn=loss_fn,
        max_epochs=1,
        work_dir=folder,
        drop_hooks=drop,
    )
    runner.train()


def work(arguments: argparse.Namespace) -> None:
    """Run one of the two processes."""
    torch.set_num_threads(1)
    random.seed(0)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    world = connect()
    group = dist.new_group(backend="gloo")  # the contenders' collectives must not mix
    results = {}
    for name, drop in (
        ("step", [hook for hook in DEFAULT_HOOKS if hook != "OptimizerHook"]),
        ("default hooks", []),
    ):
        with tempfile.TemporaryDirectory() as folder:
            shared_folder = world.broadcast_str(folder)
            contenders = {
                "by hand": partial(by_hand, group=group),
                "hookline": partial(hookline, folder=shared_folder, drop=drop),
            }
            times = take_turns(
                contenders, arguments.blocks, arguments.block, time.perf_counter, sync=world.barrier
            )
            world.barrier()
        results[name] = ratio(times["hookline"], times["by hand"])
    if world.is_main:
        setup = f"two gloo processes, tiny MLP 32-64-10, batch 32 each, torch {torch.__version__}"
        print(f"{setup}; medians of {arguments.blocks} turns")
        for name, row in results.items():
            ratios = f"{row['ratio']:8.3f} of the same by hand   {row['low']:.3f}–{row['high']:.3f}"
            print(f"{name:14}{row['us']:9.1f} µs{ratios}")
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    disconnect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=400)
    parser.add_argument("--block", type=int, default=50, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        work(arguments)
        return
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        __file__,
        *sys.argv[1:],
    ]
    sys.exit(
        subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode
    )


if __name__ == "__main__":
    main()
