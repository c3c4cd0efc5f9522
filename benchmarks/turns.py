"""Contenders that take turns: each trains in one thread, for about 25 milliseconds at a time.

A disturbance affects all of them, so that ratios are right on a busy machine too. The times are CPU
times of the thread.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import nn

WARM_UP = 10  # turns that do not count


def take_turns(
    contenders: dict[str, Callable[[TurnLoader], None]],
    blocks: int,
    block: int,
    clock: Callable[[], float] = time.thread_time,
    before: Mapping[str, int] = {},
    sync: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Return the microseconds per iteration of each contender by turn, after the warm-up.

    Args:
        contenders: Functions that train on a loader.
        blocks: The number of turns.
        block: The number of iterations in a turn.
        clock: Returns seconds.
        before: The number of iterations that a contender trains before the turns begin.
        sync: Called before each turn; its time does not count.
    """
    turns = Turns(list(contenders), blocks + WARM_UP, block, clock, sync)
    threads = [
        threading.Thread(target=run, args=(TurnLoader(turns, name, before.get(name, 0)),))
        for name, run in contenders.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: values[WARM_UP:] for name, values in turns.microseconds.items()}


def ratio(values: list[float], base: list[float]) -> dict[str, float]:
    """Return the median and quartiles of the ratios to another contender in the same round."""
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "us": statistics.median(values),
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
    }


class Turns:
    """Lets one contender run at a time, for a block of iterations, and records the times."""

    def __init__(
        self,
        names: list[str],
        blocks: int,
        block: int,
        clock: Callable[[], float] = time.thread_time,
        sync: Callable[[], object] = lambda: None,
    ) -> None:
        self.block = block
        self.clock = clock
        self.sync = sync
        self.microseconds: dict[str, list[float]] = {name: [] for name in names}
        self._order = [name for _ in range(blocks) for name in random.sample(names, len(names))]
        self._next = 0
        self._changed = threading.Condition()

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
    """A loader that repeats a few batches as long as there are turns."""

    def __init__(self, turns: Turns, name: str, before: int = 0) -> None:
        generator = torch.Generator().manual_seed(0)
        self._batches = [
            (
                torch.randn(32, 32, generator=generator),
                torch.randint(10, (32,), generator=generator),
            )
            for _ in range(64)
        ]
        self._turns = turns
        self._name = name
        self._before = before

    def __len__(self) -> int:
        blocks = sum(name == self._name for name in self._turns._order)
        return self._before + blocks * self._turns.block

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        batches = self._batches
        count = len(batches)
        block = range(self._turns.block)
        for index in range(self._before):
            yield batches[index % count]
        while self._turns.wait(self._name):
            self._turns.sync()
            started = self._turns.clock()
            for index in block:
                yield batches[index % count]
            self._turns.done(self._name, self._turns.clock() - started)


def parts() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()
