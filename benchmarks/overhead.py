"""What an iteration costs beyond the model: Hookline against the same loop written by hand, in one run.

    python benchmarks/overhead.py [--rounds 15] [--iters 3000] [--json FILE]

A tiny MLP (32-64-10), batch 32, one thread: small enough that every microsecond of framework shows. CPU time is taken, which
other programs disturb least. The contenders take turns in random order, and each round's times are divided by the bare
loop's of the same round.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks.builder import DEFAULT_HOOKS

WARM_UP = 200


class Idle(BaseHook):
    """A hook with nothing to do in an iteration."""

    def before_run(self, runner):
        pass

    def after_epoch(self, runner):
        pass


class TimedLoader:
    """The same few batches over and over; notes the time from the end of the warm-up to the last batch."""

    def __init__(self, iters: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self._batches = [(torch.randn(32, 32, generator=generator), torch.randint(10, (32,), generator=generator)) for _ in range(64)]
        self._iters = iters
        self.seconds = 0.0

    def __len__(self) -> int:
        return self._iters + WARM_UP

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        batches, count = self._batches, len(self._batches)
        for index in range(WARM_UP):
            yield batches[index % count]
        started = time.process_time()
        for index in range(self._iters):
            yield batches[index % count]
        self.seconds = time.process_time() - started


def parts() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()


def bare(loader: TimedLoader) -> None:
    model, optimizer, loss_fn = parts()
    model.train()
    for inputs, targets in loader:
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def hookline(loader: TimedLoader, *, idle: int = 0, minimal: bool = False) -> None:
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


CONTENDERS: dict[str, Callable[[TimedLoader], None]] = {
    "bare loop": bare,
    "minimal (OptimizerHook)": lambda loader: hookline(loader, minimal=True),
    "default hooks": hookline,
    "default hooks + 10 idle": lambda loader: hookline(loader, idle=10),
}


def measure(rounds: int, iters: int) -> dict[str, dict[str, float]]:
    """Microseconds per iteration and the ratio to the bare loop: median and quartiles over the rounds."""
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in random.sample(list(CONTENDERS), len(CONTENDERS)):
            loader = TimedLoader(iters)
            CONTENDERS[name](loader)
            times[name].append(loader.seconds / iters * 1e6)
    results = {}
    for name, values in times.items():
        ratios = [value / base for value, base in zip(values, times["bare loop"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        results[name] = {"us": statistics.median(values), "ratio": statistics.median(ratios), "low": low, "high": high}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--iters", type=int, default=3000)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    results = measure(arguments.rounds, arguments.iters)
    print(f"tiny MLP 32-64-10, batch 32, one thread, torch {torch.__version__}; medians of {arguments.rounds} rounds of {arguments.iters}")
    print(f"{'':28}{'µs/iter':>9}{'ratio':>8}   quartiles")
    for name, row in results.items():
        print(f"{name:28}{row['us']:9.1f}{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
