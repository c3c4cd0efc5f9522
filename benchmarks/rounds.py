"""Whole frameworks that take turns: each trains in one thread, a few iterations at a time.

A turn is about 25 milliseconds, so that a disturbance affects all of them. The cost of an epoch is
the sum of its turns, with the work that a framework does at the end of an epoch. The times are CPU
times of the training thread; those of other threads that a contender starts are counted apart.
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
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

WARM_UP = 2  # epochs that do not count


@dataclass
class Problem:
    """A model and its data.

    Args:
        name: A description.
        model: Makes the model.
        shape: The shape of a sample.
        batch_size: The number of samples in a batch.
        epoch: The number of iterations in an epoch.
        turn: The number of iterations in a turn.
        validation: The number of batches of a validation.
    """

    name: str
    model: Callable[[], torch.nn.Module]
    shape: tuple[int, ...]
    batch_size: int
    epoch: int
    turn: int
    validation: int = 10

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
    """The times of one contender, in microseconds per iteration.

    Args:
        epochs: The time of each epoch.
        typical: The time of an epoch made of the median of each turn over all epochs, so that one
            slow turn does not change it.
        background: The time of threads that it started.
        error: The reason why it is left out.
    """

    epochs: list[float] = field(default_factory=list)
    typical: float = 0.0
    background: float = 0.0
    error: str | None = None


class Rounds:
    """Lets one contender run at a time, in random order."""

    def __init__(self, names: list[str], problem: Problem, epochs: int) -> None:
        self.problem = problem
        self.names = list(names)
        # Half an epoch before the first turn, and half after the last.
        self.epochs = epochs + WARM_UP + 1
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
        """Wait for the first turn of a contender, which is set up."""
        self._ready.release()
        self._floor[name].acquire()

    def wait_until_ready(self) -> None:
        self._ready.acquire()

    def pass_on(self, name: str, seconds: float) -> None:
        """Record a turn; return when the next one begins, or when there is none left."""
        self.seconds[name].append(seconds)
        if len(self.seconds[name]) == self.turns:
            self.leave(name)
            return
        self._next()
        self._floor[name].acquire()

    def leave(self, name: str, *, failed: bool = False) -> None:
        """Remove a contender that has had all its turns, or has failed."""
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
    """A DataLoader with prepared batches."""

    def __init__(self, problem: Problem) -> None:
        samples = problem.validation * problem.batch_size
        super().__init__(TensorDataset(torch.zeros(samples)), batch_size=problem.batch_size)
        self.ready = problem.batches(problem.validation, seed=1)

    def __len__(self) -> int:
        return len(self.ready)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:  # type: ignore[override]
        return iter(self.ready)


class TurnLoader(DataLoader):
    """The training data of one contender: a DataLoader with prepared batches."""

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
        rounds = self._rounds
        batches = self._batches
        clock = time.thread_time
        epoch = rounds.problem.epoch
        turn = rounds.problem.turn
        count = len(batches)
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
    """Let all contenders train the same problem; the outcome of a failed one has the error."""
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
    for name, outcome in outcomes.items():
        _fill_outcome(outcome, rounds, name)
    return outcomes


def _fill_outcome(outcome: Outcome, rounds: Rounds, name: str) -> None:
    """Compute the times of a contender from its turns."""
    problem = rounds.problem
    turns = rounds.seconds[name]
    turns_per_epoch = problem.epoch // problem.turn
    epochs = []
    for start in range(0, len(turns) - turns_per_epoch + 1, turns_per_epoch):
        epochs.append(turns[start : start + turns_per_epoch])
    epochs = epochs[WARM_UP:]
    outcome.epochs = [sum(epoch) / problem.epoch * 1e6 for epoch in epochs]
    if epochs:
        medians = map(statistics.median, zip(*epochs, strict=True))
        outcome.typical = sum(medians) / problem.epoch * 1e6
    outcome.background = rounds.background[name] / (rounds.epochs * problem.epoch) * 1e6


def _play(rounds: Rounds, name: str, run: Contender, outcome: Outcome) -> None:
    failed = True
    try:
        torch.manual_seed(0)
        run(rounds.loader(name), rounds.problem, rounds.epochs)
        failed = False
    except Exception as error:
        outcome.error = describe_error(error)
        traceback.print_exc()
    finally:
        if failed or len(rounds.seconds[name]) < rounds.turns:
            outcome.error = outcome.error or "trained for fewer epochs than requested"
            rounds.leave(name, failed=True)


@contextmanager
def background_time(seconds: dict[str, float]) -> Iterator[None]:
    """Count the CPU time of the threads that each contender starts."""
    thread_class: Any = threading.Thread
    original_start = thread_class.start
    original_run = thread_class.run

    def start(self: Any) -> None:
        starter = threading.current_thread()
        self._for = getattr(starter, "_for", None)
        if self._for is None and ":" in starter.name:
            self._for = starter.name.removeprefix("contender:")
        original_start(self)

    def run(self: threading.Thread) -> None:
        try:
            original_run(self)
        finally:
            name = getattr(self, "_for", None)
            if name in seconds and not self.name.startswith("contender:"):
                seconds[name] += time.thread_time()

    thread_class.start = start
    thread_class.run = run
    try:
        yield
    finally:
        thread_class.start = original_start
        thread_class.run = original_run


def describe_error(error: Exception) -> str:
    """Return the type of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def compare(one: Outcome, base: Outcome) -> dict[str, float]:
    """Return the ratio of the typical epochs of two contenders, and quartiles of the ratios."""
    ratios = [value / other for value, other in zip(one.epochs, base.epochs, strict=False)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {"us": one.typical, "ratio": one.typical / base.typical, "low": low, "high": high}
