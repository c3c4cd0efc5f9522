"""Seams of a run with several processes: what one of them asks for is done by all, after the same iteration."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hookline.engine.hook import BaseHook
from hookline.engine.seams import Seam, Write, asker
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

EVERY = 1.0  # seconds that a request may wait for the next agreement
FARTHEST = 64  # iterations


class SharedSeam(Seam):
    """Requests of several processes.

    Those of hooks that declare `ranks = "collective"` are made by all processes in the same iteration, and honoured right
    after it. All others (of one process's signal, clock, loss or background thread) wait for an agreement: one small
    collective about every second, at the end of every epoch, and where a collective request is honoured anyway.
    """

    def __init__(self, runner: BaseRunner) -> None:
        self._runner = runner
        self._due = False
        self._next = 0
        self._agreed_at = runner.iter, perf_counter()
        self._own: dict[str, Any] = {}  # what this process alone asks for
        self._own_writes: list[Write] = []
        self._capture = False  # whether some process wants to write a checkpoint: all of them take part in that
        super().__init__()

    @property
    def pending(self) -> bool:  # type: ignore[override]
        """Whether the loop has to settle; the same on all processes."""
        return self._due or self._runner.iter >= self._next

    @pending.setter
    def pending(self, value: bool) -> None:
        self._due = value

    def call_next(self, function: Callable[[], object]) -> None:
        self._calls.append(function)

    def request_validate(self) -> None:
        if self._asked_by_all():
            super().request_validate()
        else:
            self._own["validate"] = True

    def request_save(self, write: Write) -> None:
        if self._asked_by_all():
            super().request_save(write)
        elif write not in self._own_writes:
            self._own_writes.append(write)

    def request_save_as(self, name: str | None, local: bool) -> bool:
        """Note that this process wants a checkpoint of a name; False if all do, and it can be asked for at once."""
        if not local and self._asked_by_all():
            return False
        names = self._own.setdefault("saves", [])
        if name not in names:
            names.append(name)
        return True

    def request_stop(self, reason: str) -> None:
        if self._asked_by_all():
            super().request_stop(reason)
        else:
            self._own.setdefault("stop", reason)

    def request_go_back(self, function: Callable[[], object]) -> None:
        raise HooklineError("going back to an earlier state works in a run of one process only: leave the hook that asks for it out")

    def go_back(self) -> bool:
        return False

    def epoch_ends(self) -> None:
        self._due = True

    def settle_before_training(self, runner: BaseRunner) -> None:
        if not runner.resuming:
            self.settle(runner)
            return
        self._agree(runner)
        super().settle_before_training(runner)
        self._due = self._save_wanted()
        self._next = runner.iter + 1  # how long an iteration takes is not known yet

    def settle(self, runner: BaseRunner) -> None:
        while self._calls:  # first, for they may ask for something
            self._calls.pop()()
        self._agree(runner)
        if self._validate:
            self.validate(runner)
            self._agree(runner)  # what its hooks ask for belongs to this seam
        super().settle(runner)
        self._capture = self._capture and runner.accumulating
        self._plan(runner)

    def _save_wanted(self) -> bool:
        return self._capture or bool(self._writes)

    def _agree(self, runner: BaseRunner) -> None:
        """Tell all what each one wants, and make it what everyone wants."""
        since, started = self._agreed_at
        asked, self._own = self._own, {}  # first: what a signal asks for from now on is for the next agreement
        own_writes, self._own_writes = self._own_writes, []
        own = {
            **asked,
            "at": [runner.epoch, runner.inner_iter, runner.iter],
            "validate": self._validate or asked.get("validate", False),
            "capture": bool(self._writes or own_writes),
            "seconds": (perf_counter() - started) / max(1, runner.iter - since),
        }
        told = [json.loads(text) for text in runner.world.gather_text(json.dumps(own))]
        _check_same_place([each["at"] for each in told])
        self._validate = any(each["validate"] for each in told)
        for name in dict.fromkeys(name for each in told for name in each.get("saves", [])):
            if runner.saver is not None:
                super().request_save(runner.saver(name))
        self._capture = self._capture or any(each["capture"] for each in told)
        for write in own_writes:
            super().request_save(write)
        reasons = [(each["stop"], rank) for rank, each in enumerate(told) if each.get("stop")]
        if reasons:
            reason, rank = reasons[0]
            self._stop = self._stop or (reason if rank == 0 else f"{reason} (process {rank})")
        self._seconds = max(each["seconds"] for each in told)

    def _plan(self, runner: BaseRunner) -> None:
        """Choose the next iteration to agree after; all processes choose the same."""
        self._next = runner.iter + max(1, min(FARTHEST, int(EVERY / max(self._seconds, 1e-6))))
        self._agreed_at = runner.iter, perf_counter()

    def _asked_by_all(self) -> bool:
        """Whether the request comes from a hook that makes it on all processes."""
        owner = asker()
        return isinstance(owner, BaseHook) and owner.ranks == "collective"


def _check_same_place(places: list[list[int]]) -> None:
    if any(place != places[0] for place in places):
        texts = [
            f"process {rank} after batch {inner} of epoch {epoch + 1} (iteration {done})"
            for rank, (epoch, inner, done) in enumerate(places)
        ]
        raise HooklineError(
            f"the processes are not at the same place, so that they have had different numbers of batches: {'; '.join(texts)}"
        )
