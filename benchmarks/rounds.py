"""Whole frameworks that take turns: each trains epochs of its own in a thread, a few iterations at a time.

A turn is about 25 milliseconds, so that what disturbs one disturbs all; an epoch's cost is the sum of its turns, and holds what a framework
does at the end of an epoch. CPU time of the training thread is taken, and apart from it that of threads which a contender starts.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader, TensorDataset

WARM_UP = 2  # epochs that do not count


@dataclass
class Problem:
    """What is trained: data of a shape, an epoch's length, and how many iterations a turn has."""

    name: str
    model: Callable[[], torch.nn.Module]
    shape: tuple[int, ...]
    batch_size: int
    epoch: int
    turn: int
    validation: int = 10  # batches

    def batches(self, count: int, seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        size = self.batch_size
        return [
            (
                torch.randn(size, *self.shape, generator=generator),
                torch.randint(10, (size,), generator=generator),
            )
            for _ in range(count)
        ]


@dataclass
class Outcome:
    """What the rounds showed of one contender: microseconds per iteration, epoch by epoch."""

    epochs: list[float] = field(default_factory=list)
    typical: float = 0.0  # an epoch made of typical turns: of each of its turns the median over all epochs, which one bad turn does not move
    background: float = 0.0  # microseconds per iteration of threads that it started
    error: str | None = None


class Rounds:
    """Gives the floor to one contender at a time, in random order."""

    def __init__(self, names: list[str], problem: Problem, epochs: int) -> None:
        self.problem, self.names = problem, list(names)
        self.epochs = (
            epochs + WARM_UP + 1
        )  # half an epoch before the first turn, and half after the last
        self.turns = (epochs + WARM_UP) * (problem.epoch // problem.turn)
        self.seconds: dict[str, list[float]] = {name: [] for name in names}
        self.background = dict.fromkeys(names, 0.0)
        self._floor = {name: threading.Semaphore(0) for name in names}
        self._playing = set(names)
        self._this_round: list[str] = []
        self._ready = threading.Semaphore(0)
        self.over = threading.Event()

    def loader(self, name: str) -> TurnLoader:
        return TurnLoader(self, name)

    def begin(self) -> None:
        self._next()

    def ready(self, name: str) -> None:
        """A contender has come to its first turn, and waits for it."""
        self._ready.release()
        self._floor[name].acquire()

    def wait_until_ready(self) -> None:
        self._ready.acquire()

    def pass_on(self, name: str, seconds: float) -> None:
        """A turn is over; returns when the next one begins, or when there is none left."""
        self.seconds[name].append(seconds)
        if len(self.seconds[name]) == self.turns:
            self.leave(name)
            return
        self._next()
        self._floor[name].acquire()

    def leave(self, name: str, *, failed: bool = False) -> None:
        """A contender has had all its turns, or has failed."""
        if name in self._playing:
            self._playing.discard(name)
            if failed and len(self.seconds[name]) == 0:
                self._ready.release()
            else:
                self._next()

    def _next(self) -> None:
        while True:
            if not self._this_round:
                self._this_round = random.sample(sorted(self._playing), len(self._playing))
            if not self._this_round:
                self.over.set()
                return
            name = self._this_round.pop()
            if name in self._playing:
                self._floor[name].release()
                return


class ReadyLoader(DataLoader):
    """Ready made batches, for frameworks that want a DataLoader."""

    def __init__(self, problem: Problem) -> None:
        samples = problem.validation * problem.batch_size
        super().__init__(TensorDataset(torch.zeros(samples)), batch_size=problem.batch_size)
        self.ready = problem.batches(problem.validation, seed=1)

    def __len__(self) -> int:
        return len(self.ready)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # type: ignore[override]
        return iter(self.ready)


class TurnLoader(DataLoader):
    """The training data of one contender; some frameworks want a DataLoader, so it is one, but its batches are ready made."""

    def __init__(self, rounds: Rounds, name: str) -> None:
        problem = rounds.problem
        super().__init__(
            TensorDataset(torch.zeros(problem.epoch * problem.batch_size)),
            batch_size=problem.batch_size,
        )
        self.__dict__.update(
            _rounds=rounds, _name=name, _batches=problem.batches(32), _started=None
        )

    def __len__(self) -> int:
        return self._rounds.problem.epoch

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # type: ignore[override]
        rounds, batches, clock = self._rounds, self._batches, time.thread_time
        epoch, turn, count = rounds.problem.epoch, rounds.problem.turn, len(self._batches)
        middle = turn // 2  # so that the end of an epoch lies in the middle of a turn
        for index in range(epoch):
            if index % turn == middle and len(rounds.seconds[self._name]) < rounds.turns:
                if self._started is None:
                    rounds.ready(self._name)
                else:
                    rounds.pass_on(self._name, clock() - self._started)
                self.__dict__["_started"] = clock()
            yield batches[index % count]


Contender = Callable[[TurnLoader, Problem, int], None]


def compete(contenders: dict[str, Contender], problem: Problem, epochs: int) -> dict[str, Outcome]:
    """Let all train the same problem; who fails is left out, with the reason."""
    rounds = Rounds(list(contenders), problem, epochs)
    outcomes = {name: Outcome() for name in contenders}
    with background_time(rounds.background):
        threads = []
        for name, run in contenders.items():
            thread = threading.Thread(
                target=_play,
                args=(rounds, name, run, outcomes[name]),
                name=f"contender:{name}",
                daemon=True,
            )
            thread.start()
            threads.append(thread)
            rounds.wait_until_ready()  # one sets up after another
        rounds.begin()
        for thread in threads:
            thread.join()
    per_epoch = problem.epoch // problem.turn
    for name, outcome in outcomes.items():
        turns = rounds.seconds[name]
        whole = [
            turns[at : at + per_epoch] for at in range(0, len(turns) - per_epoch + 1, per_epoch)
        ][WARM_UP:]
        outcome.epochs = [sum(epoch) / problem.epoch * 1e6 for epoch in whole]
        outcome.typical = (
            sum(map(statistics.median, zip(*whole, strict=True))) / problem.epoch * 1e6
            if whole
            else 0.0
        )
        outcome.background = rounds.background[name] / (rounds.epochs * problem.epoch) * 1e6
    return outcomes


def _play(rounds: Rounds, name: str, run: Contender, outcome: Outcome) -> None:
    failed = True
    try:
        torch.manual_seed(0)
        run(rounds.loader(name), rounds.problem, rounds.epochs)
        failed = False
    except Exception as error:
        outcome.error = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        traceback.print_exc()
    finally:
        if failed or len(rounds.seconds[name]) < rounds.turns:
            outcome.error = outcome.error or "trained less than it was asked to"
            rounds.leave(name, failed=True)


@contextmanager
def background_time(seconds: dict[str, float]) -> Iterator[None]:
    """Count the CPU time of the threads that contenders start, each for the one who started it."""
    original_start, original_run = threading.Thread.start, threading.Thread.run

    def start(self: threading.Thread) -> None:
        starter = threading.current_thread()
        self._for = getattr(starter, "_for", None) or (
            starter.name.removeprefix("contender:") if ":" in starter.name else None
        )
        original_start(self)

    def run(self: threading.Thread) -> None:
        try:
            original_run(self)
        finally:
            name = getattr(self, "_for", None)
            if name in seconds and not self.name.startswith("contender:"):
                seconds[name] += time.thread_time()

    threading.Thread.start, threading.Thread.run = start, run  # type: ignore[method-assign]
    try:
        yield
    finally:
        threading.Thread.start, threading.Thread.run = original_start, original_run  # type: ignore[method-assign]


def compared(one: Outcome, base: Outcome) -> dict[str, float]:
    """The ratio of the typical epochs of two contenders, and quartiles of the ratios epoch by epoch."""
    ratios = [value / other for value, other in zip(one.epochs, base.epochs, strict=False)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {"us": one.typical, "ratio": one.typical / base.typical, "low": low, "high": high}
