"""Contenders that take turns: each trains in a thread of its own, one at a time, for about 25 milliseconds.

What disturbs one disturbs all, so that ratios hold on a busy machine too. CPU time of the thread is taken.
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
    meet: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Microseconds per iteration of each contender, turn by turn, after the warm-up.

    `before` says how many iterations a contender has behind it when the turns begin; `meet` is called before each turn, and does not count.
    """
    turns = Turns(list(contenders), blocks + WARM_UP, block, clock, meet)
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
    """The median of the ratios to another contender's turns of the same round, with quartiles."""
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "us": statistics.median(values),
        "ratio": statistics.median(ratios),
        "low": low,
        "high": high,
    }


class Turns:
    """Lets one contender run at a time, for a block of iterations, and notes what each block cost."""

    def __init__(
        self,
        names: list[str],
        blocks: int,
        block: int,
        clock: Callable[[], float] = time.thread_time,
        meet: Callable[[], object] = lambda: None,
    ) -> None:
        self.block, self.clock, self.meet = block, clock, meet
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
    """The same few batches over and over, as long as there are turns."""

    def __init__(self, turns: Turns, name: str, before: int = 0) -> None:
        generator = torch.Generator().manual_seed(0)
        self._batches = [
            (
                torch.randn(32, 32, generator=generator),
                torch.randint(10, (32,), generator=generator),
            )
            for _ in range(64)
        ]
        self._turns, self._name, self._before = turns, name, before

    def __len__(self) -> int:
        blocks = sum(name == self._name for name in self._turns._order)
        return self._before + blocks * self._turns.block

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        batches, count, block = self._batches, len(self._batches), range(self._turns.block)
        for index in range(self._before):
            yield batches[index % count]
        while self._turns.wait(self._name):
            self._turns.meet()
            started = self._turns.clock()
            for index in block:
                yield batches[index % count]
            self._turns.done(self._name, self._turns.clock() - started)


def parts() -> tuple[nn.Module, torch.optim.Optimizer, nn.Module]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.01), nn.CrossEntropyLoss()
