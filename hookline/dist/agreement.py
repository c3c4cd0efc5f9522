"""Exchange requests between ranks, so that all act on them after the same iteration."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from hookline.dist.world import World
from hookline.errors import HooklineError

AGREEMENT_PERIOD_S = 1.0  # how long a request of one rank may wait
MAX_AGREEMENT_GAP = 64  # iterations between two exchanges


class Agreement:
    """Collects the requests of all ranks in one small collective.

    Args:
        world: The ranks that take part.
        clock: Returns seconds; measures how long an iteration takes.
    """

    def __init__(self, world: World, clock: Callable[[], float] = perf_counter) -> None:
        self._world = world
        self._clock = clock
        self._iteration = 0  # of the last exchange
        self._time = clock()
        self._seconds_per_iteration = AGREEMENT_PERIOD_S

    def exchange(self, own: Mapping[str, Any], position: list[int]) -> list[dict[str, Any]]:
        """Return the requests of all ranks, by rank; raise if the ranks are not in step.

        Args:
            own: The requests of this rank, as plain values.
            position: Epoch, batch and iteration of this rank.
        """
        done = max(1, position[-1] - self._iteration)
        message = {**own, "at": position, "seconds": (self._clock() - self._time) / done}
        answers = self._world.gather_text(json.dumps(message))
        requests = [json.loads(answer) for answer in answers]
        _check_in_step([each["at"] for each in requests])
        self._seconds_per_iteration = max(each["seconds"] for each in requests)
        return requests

    def schedule(self, iteration: int) -> int:
        """Return the iteration of the next exchange; the same on all ranks."""
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
