"""What an iteration costs beyond the model: Hookline against the same loop written by hand, in one run.

    python benchmarks/overhead.py [--blocks 150] [--block 40] [--json FILE]

A tiny MLP (32-64-10), batch 32, one thread: small enough that every microsecond of framework shows. All contenders train at the
same time, each in a thread of its own, and take turns of a few milliseconds, one at a time and in random order: what
disturbs one disturbs all. A turn's CPU time is divided by the bare loop's of the same round.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks.builder import DEFAULT_HOOKS

WARM_UP = 10


class Idle(BaseHook):
    """A hook with nothing to do in an iteration."""

    def before_run(self, runner):
        pass

    def after_epoch(self, runner):
        pass


class Turns:
    """Lets one contender run at a time, for a block of iterations, and notes what each block cost."""

    def __init__(self, names: list[str], blocks: int, block: int) -> None:
        self.block = block
        self.microseconds: dict[str, list[float]] = {name: [] for name in names}
        self._order = [name for _ in range(blocks) for name in random.sample(names, len(names))]
        self._next = 0
        self._changed = threading.Condition()

    def loader(self, name: str) -> TurnLoader:
        return TurnLoader(self, name)

    def wait(self, name: str) -> bool:
        """Return when it is this contender's turn; False if there is none left."""
        with self._changed:
            while self._next < len(self._order) and self._order[self._next] != name:
                self._changed.wait()
            return self._next < len(self._order)

    def done(self, name: str, seconds: float) -> None:
        with self._changed:
            self.microseconds[name].append(seconds / self.block * 1e6)
            self._next += 1
            self._changed.notify_all()


class TurnLoader:
    """The same few batches over and over, as long as there are turns."""

    def __init__(self, turns: Turns, name: str) -> None:
        generator = torch.Generator().manual_seed(0)
        self._batches = [(torch.randn(32, 32, generator=generator), torch.randint(10, (32,), generator=generator)) for _ in range(64)]
        self._turns, self._name = turns, name

    def __len__(self) -> int:
        blocks = sum(name == self._name for name in self._turns._order)
        return blocks * self._turns.block

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        batches, count, block = self._batches, len(self._batches), range(self._turns.block)
        while self._turns.wait(self._name):
            started = time.thread_time()
            for index in block:
                yield batches[index % count]
            self._turns.done(self._name, time.thread_time() - started)


def parts() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()


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
    """Microseconds per iteration and the ratio to the bare loop: median and quartiles over the blocks after the warm-up."""
    turns = Turns(list(CONTENDERS), blocks + WARM_UP, block)
    threads = [threading.Thread(target=run, args=(turns.loader(name),)) for name, run in CONTENDERS.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = {name: values[WARM_UP:] for name, values in turns.microseconds.items()}
    results = {}
    for name, values in times.items():
        ratios = [value / base for value, base in zip(values, times["bare loop"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        results[name] = {"us": statistics.median(values), "ratio": statistics.median(ratios), "low": low, "high": high}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=150)
    parser.add_argument("--block", type=int, default=40, help="iterations in a turn")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    results = measure(arguments.blocks, arguments.block)
    print(f"tiny MLP 32-64-10, batch 32, one thread, torch {torch.__version__}; medians of {arguments.blocks} turns")
    print(f"{'':28}{'µs/iter':>9}{'ratio':>8}   quartiles")
    for name, row in results.items():
        print(f"{name:28}{row['us']:9.1f}{row['ratio']:8.3f}   {row['low']:.3f}–{row['high']:.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
