"""Who keeps the others waiting: every process tells where it is, and looks at the others, beside the training.

Nothing here takes part in a collective, and nothing is recorded on the hot path: where a process is, is read from its stack.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch.distributed as dist

from hookline.dist.world import World

log = logging.getLogger("hookline")

BEAT = 0.5  # seconds between two looks
SILENT = 5.0  # seconds after which a process that tells nothing is taken for stopped or gone
GRACE = 2.5  # seconds in which an error of a collective finds its cause; a dead process is to end all within five
DEAD = 1.5  # seconds without a word that make a process that cause: three beats, and long over when the grace is


class Place(NamedTuple):
    """Where a process is."""

    progress: list[int]  # something that changes as long as it gets on
    text: str  # `iteration 12, OptimizerHook at optimize`
    waiting: bool  # whether it is in a collective, where it may wait for others
    lines: str  # which call of a collective that is

    def same(self, other: Place) -> bool:
        """Whether nothing has happened between the two, or, of two processes, whether they wait for the same thing."""
        if self.progress != other.progress or self.waiting != other.waiting:
            return False
        return not self.waiting or self.lines == other.lines


class Seen(NamedTuple):
    """What is known of a process: what it told last, when that was, and since when it is where it is."""

    beat: int
    place: Place
    heard: float
    since: float


class Watch:
    """Tells the others where this process is, and ends it with a message when one of them keeps it waiting.

    `where` says where this process is now, or where an error was raised. One thread talks to the store in which the processes
    leave their notes, another one judges what is known: it is still there when the store hangs with the process that has it.
    """

    def __init__(self, world: World, where: Callable[[BaseException | None], Place], timeout: float) -> None:
        self._world, self._where, self._timeout = world, where, timeout
        self._patience = min(SILENT, timeout / 2)
        self._store = dist.TCPStore(  # type: ignore[attr-defined]
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
        )
        self._host = "torchrun" if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else "process 0"  # who has the store
        # A name of its own for every run: torchrun's store outlives a restart, and what the dead have told must not end the living.
        self._prefix = f"hookline/{world.main_says(secrets.token_hex(8))}"
        self._seen: dict[int, Seen] = {}
        self._beats = 0
        self._raised: BaseException | None = None  # the error with which this process is about to end
        self._ending = False  # whether this process ends by itself, with an error
        self._to_tell: str | None = None
        self._failure: str | None = None  # what another process has told
        self._answered = time.monotonic()
        self._lost = False  # whether the store is gone
        self._hurry, self._stopped = threading.Event(), threading.Event()
        self._tell_place()
        world.barrier()  # so that everyone has told something when the first one looks
        self._talker = threading.Thread(target=self._talk, name="hookline-watch-talk", daemon=True)
        self._judge = threading.Thread(target=self._judge_all, name="hookline-watch", daemon=True)
        for thread in (self._talker, self._judge):
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._hurry.set()
        self._talker.join(self._patience)
        self._judge.join(self._patience)
        if self._to_tell is not None and self._host == f"process {self._world.rank}":
            time.sleep(2 * BEAT)  # the store goes with this process, and the others shall have read what it told

    def tell_failure(self, error: BaseException) -> None:
        """Let the others know that this process ends with an error; the first one to say so is the cause."""
        self._to_tell = f"process {self._world.rank} failed: {type(error).__name__}: {error}"[:2000]

    def cause_elsewhere(self, error: BaseException) -> str | None:
        """What happened to another process, if this one's error only follows from that; None if it is its own."""
        started, own = time.monotonic(), self._where(error)
        self._raised, self._ending = error, True
        self._hurry.set()
        while own.waiting and self._failure is None and not self._lost and time.monotonic() - started < GRACE:
            time.sleep(BEAT / 10)
        if own.waiting and self._failure is None:
            self._to_tell = self._cause(own)
        self._raised = None
        return self._failure or self._to_tell

    def _cause(self, own: Place) -> str | None:
        """Why a collective failed, if another process was the reason."""
        known = self._known()
        silent, left = self._silent(known, DEAD), self._left(known)
        if self._hangs(DEAD):  # nobody can be heard then
            silent = []
        if silent or (self._hangs(DEAD) and not left):
            return f"{_processes(silent) if silent else self._host} answered no more: killed, stopped, or its machine is gone"
        if left:
            return f"{_processes(left)} ended its run before the others"
        if all(seen.place.waiting for _, seen in known) and not all(seen.place.same(own) for _, seen in known):
            return f"the processes met at different places: {_places(known)}"
        return None

    # Talking: what this process tells, and what it hears.

    def _talk(self) -> None:
        try:
            while not self._stopped.is_set():
                self._tell_place()
                self._tell_failure()
                self._listen()
                self._answered = time.monotonic()
                self._hurry.wait(min(BEAT, self._timeout / 8))
                if self._hurry.is_set():
                    self._stopped.wait(BEAT / 5)
            self._tell_failure()
            self._set(self._world.rank, {"beat": -1})  # gone, and all is told
        except (RuntimeError, OSError):  # the store is gone, with whoever had it
            self._lost = True

    def _tell_place(self) -> None:
        self._beats += 1
        place = self._where(self._raised)
        self._note(self._world.rank, self._beats, place)
        self._set(self._world.rank, {"beat": self._beats, "place": place})

    def _tell_failure(self) -> None:
        if self._to_tell is not None:
            self._store.compare_set(f"{self._prefix}/failed", "", f"{self._world.rank} {self._to_tell}")

    def _listen(self) -> None:
        others = [rank for rank in range(self._world.size) if rank != self._world.rank]
        for rank, note in zip(others, self._store.multi_get([f"{self._prefix}/{rank}" for rank in others]), strict=True):
            told = json.loads(note)
            if told["beat"] < 0:
                self._seen.pop(rank, None)
            else:
                self._note(rank, told["beat"], Place(*told["place"]))
        if self._store.check([f"{self._prefix}/failed"]):
            by, _, text = self._store.get(f"{self._prefix}/failed").decode().partition(" ")
            self._failure = text if by != str(self._world.rank) else None

    def _note(self, rank: int, beat: int, place: Place) -> None:
        now, before = time.monotonic(), self._seen.get(rank)
        heard = before.heard if before is not None and before.beat == beat else now
        since = before.since if before is not None and before.place.same(place) else now
        self._seen[rank] = Seen(beat, place, heard, since)

    def _set(self, rank: int, content: dict[str, Any]) -> None:
        self._store.set(f"{self._prefix}/{rank}", json.dumps(content))

    # Judging: from what is known alone, for the store may hang.

    def _judge_all(self) -> None:
        while not self._stopped.wait(min(BEAT, self._timeout / 8)):
            self._note(self._world.rank, self._beats, self._where(self._raised))
            if self._failure is not None and not self._ending:
                self._stopped.wait(self._patience)  # the main thread most likely notices by itself
                if not self._ending and not self._stopped.is_set():
                    self._end(f"{self._failure}; this process ends too", speaks=True, guilty=False)
            verdict = self._verdict()
            if verdict is not None and not self._stopped.is_set():
                text, guilty = verdict
                known = self._known()
                silent = self._silent(known, self._patience)
                speaks = self._world.rank == min(rank for rank, _ in known if rank not in silent)
                self._end(text, speaks=speaks, guilty=self._world.rank in guilty)

    def _verdict(self) -> tuple[str, list[int]] | None:
        """Whom the others wait for, in words and by rank; None as long as anyone gets on, or nobody waits."""
        now, known = time.monotonic(), self._known()
        if self._hangs(self._patience):
            own = self._seen[self._world.rank]
            if not own.place.waiting or now - own.since <= self._timeout:
                return None
            return f"{self._host} answered no more; nothing moved for {self._timeout:.0f} s. Here: {own.place.text}", []
        if any(now - seen.since <= self._timeout for _, seen in known) or not any(seen.place.waiting for _, seen in known):
            return None
        silent, left = self._silent(known, self._patience), self._left(known)
        busy = [rank for rank, seen in known if not seen.place.waiting and rank not in silent]
        if silent:
            verdict = f"{_processes(silent)} answered no more (stopped, or its machine is gone)"
        elif busy:
            verdict = f"{_processes(busy)} did not come to where the others wait"
        elif left:
            verdict = f"{_processes(left)} ended its run before the others"
        elif not all(seen.place.same(known[0][1].place) for _, seen in known):
            verdict = "the processes wait for each other at different places"
        else:
            return None  # together in one collective, or in one backward pass: it takes long, but nobody is missing
        guilty = silent or busy or [rank for rank, _ in known]
        return f"{verdict}; nothing moved for {self._timeout:.0f} s. Where they are: {_places(known)}", guilty

    def _known(self) -> list[tuple[int, Seen]]:
        """What is known by rank; a copy, for another thread may be listening."""
        return sorted(self._seen.copy().items())

    def _silent(self, known: list[tuple[int, Seen]], seconds: float) -> list[int]:
        now = time.monotonic()
        return [rank for rank, seen in known if rank != self._world.rank and now - seen.heard > seconds]

    def _left(self, known: list[tuple[int, Seen]]) -> list[int]:
        return [rank for rank in range(self._world.size) if rank not in dict(known)]

    def _hangs(self, seconds: float) -> bool:
        """Whether the store answers no more: nothing is known of the others then."""
        return self._lost or time.monotonic() - self._answered > seconds

    def _end(self, text: str, speaks: bool, guilty: bool) -> None:
        """Out of here: the main thread may never come back. If it does meanwhile, it ends its run by itself."""
        log.error("%s", text)
        if speaks:
            print(f"hookline: {text}", file=sys.stderr)
        if guilty:
            faulthandler.dump_traceback()
        for handler in log.handlers:
            handler.flush()
        sys.stderr.flush()
        if not self._stopped.wait(4 * BEAT):  # in which the others come to the same verdict, and not to see this process gone
            os._exit(1)


def _places(known: list[tuple[int, Seen]]) -> str:
    return "; ".join(f"process {rank}: {seen.place.text}" for rank, seen in known)


def _processes(ranks: list[int]) -> str:
    return f"process {ranks[0]}" if len(ranks) == 1 else f"processes {', '.join(map(str, ranks))}"
