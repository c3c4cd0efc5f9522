"""Exchange requests between ranks, so that all act on them after the same iteration."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

from hookline.dist.world import World
from hookline.errors import HooklineError

AGREEMENT_PERIOD_S = 1.0  # how long a request of one rank may wait
MAX_AGREEMENT_GAP = 64  # iterations between two exchanges


@dataclass
class PendingRequests:
    """The requests of all ranks together."""

    validate: bool = False
    save: list[str | None] = field(default_factory=list)
    stop: dict[str, Any] | None = None


class Agreement:
    """The exchange of the requests of all ranks in one small collective.

    Args:
        world: The ranks that take part.
        clock: Returns seconds; measures how long an iteration takes.
    """

    def __init__(self, world: World, clock: Callable[[], float] = perf_counter) -> None:
        self._world = world
        self._clock = clock
        self._own = PendingRequests()  # requests of this rank alone
        self._iteration = 0  # of the last exchange
        self._time = clock()
        self._seconds_per_iteration = AGREEMENT_PERIOD_S

    def request_validate(self) -> None:
        """Request a validation of all ranks."""
        self._own.validate = True

    def request_save(self, name: str | None) -> None:
        """Request a checkpoint of all ranks; None captures the state without a file."""
        if name not in self._own.save:
            self._own.save.append(name)

    def request_stop(self, reason: dict[str, Any]) -> None:
        """Request the end of the run on all ranks; the first reason is kept."""
        self._own.stop = self._own.stop or reason

    def discard_work(self) -> None:
        """Drop requests to validate and save: the iteration that made them is rolled back."""
        self._own = PendingRequests(stop=self._own.stop)

    def exchange(self, position: list[int]) -> PendingRequests:
        """Return the requests of all ranks; raise if the ranks are not in step.

        Args:
            position: Epoch, batch and iteration of this rank.
        """
        # Swap first: a signal that arrives from now on is for the next exchange.
        own, self._own = self._own, PendingRequests()
        done = max(1, position[-1] - self._iteration)
        seconds = (self._clock() - self._time) / done
        answers = self._world.gather_text(json.dumps([position, seconds, asdict(own)]))
        requests = [json.loads(answer) for answer in answers]
        _check_in_step([position for position, _, _ in requests])
        self._seconds_per_iteration = max(seconds for _, seconds, _ in requests)
        return _merge([PendingRequests(**pending) for _, _, pending in requests])

    def schedule(self, iteration: int) -> int:
        """Choose the iteration of the next exchange, the same on all ranks, and return it."""
        self._iteration = iteration
        self._time = self._clock()
        gap = int(AGREEMENT_PERIOD_S / max(self._seconds_per_iteration, 1e-6))
        return iteration + max(1, min(MAX_AGREEMENT_GAP, gap))


def _check_in_step(positions: list[list[int]]) -> None:
    if all(position == positions[0] for position in positions):
        return
    places = [
        f"rank {rank} after batch {batch} of epoch {epoch + 1} (iteration {iteration})"
        for rank, (epoch, batch, iteration) in enumerate(positions)
    ]
    raise HooklineError(
        f"the ranks are out of step, so they got different numbers of batches: {'; '.join(places)}"
    )


def _merge(by_rank: list[PendingRequests]) -> PendingRequests:
    merged = PendingRequests()
    for rank, pending in enumerate(by_rank):
        merged.validate = merged.validate or pending.validate
        merged.save += pending.save
        if merged.stop is None and pending.stop is not None:
            merged.stop = pending.stop
            if rank:
                merged.stop["details"]["rank"] = rank
    return merged
