"""The watchdog of a distributed job: it finds ranks that hang, die or fail, and ends the others.

Every rank publishes its position in a store and reads those of the others, beside the training. No
collective is involved and nothing is recorded on the hot path: a rank that does not move is located
by the stack of its training thread.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch.distributed as dist

from hookline.dist.world import World
from hookline.printable import printable
from hookline.streams import UnfailingStream

log = logging.getLogger("hookline")

HEARTBEAT_S = 0.5
POLL_S = 0.05
SILENCE_S = 5.0  # A rank without a heartbeat for this long is unresponsive.
GRACE_S = 2.5  # Time to find why a collective failed: a dead rank must end the job within 5 s.
DEAD_AFTER_S = 1.5  # In that search a rank without a heartbeat for this long is dead.
EXIT_DELAY_S = 2.0  # Time for all ranks to reach the same diagnosis before the first one exits.
MAX_MESSAGE = 2000  # Characters of a failure that are published.
START_TOLERANCE_S = 2.0  # Start times of one process may differ when the wall clock is set.


class Place(NamedTuple):
    """The position of a rank in its run."""

    progress: list[int]  # Counters that change as long as the rank makes progress.
    text: str  # Such as `iteration 12, OptimizerHook at optimize`.
    waiting: bool  # Whether the rank is inside a collective, where it may wait for others.
    lines: str  # The call of that collective.

    def same(self, other: Place) -> bool:
        """Return whether two positions are equal.

        Two of one rank are if it made no progress in between, two of different ranks if both wait
        in the same collective.
        """
        if self.progress != other.progress or self.waiting != other.waiting:
            return False
        return not self.waiting or self.lines == other.lines


class RankState(NamedTuple):
    """The last known state of a rank, by the clock of the rank that observes it."""

    beat: int
    place: Place
    heard_at: float  # When the last heartbeat came.
    since: float  # When the rank came to its place.


class RankProcess(NamedTuple):
    """The operating system process of a rank."""

    host: str
    pid: int
    started: float

    @classmethod
    def find(cls, pid: int | None = None) -> RankProcess:
        """Describe a process of this host, by default the calling one."""
        import psutil  # Only jobs of several ranks need it.

        process = psutil.Process(pid)
        return cls(socket.gethostname(), process.pid, process.create_time())

    def kill(self) -> None:
        """Kill the process, if it runs on this host.

        A launcher would wait for it first: torchrun sends SIGTERM, which a suspended process does
        not see, and SIGKILL 30 s later.
        """
        if self.host != socket.gethostname():
            return
        import psutil

        try:
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.started) < START_TOLERANCE_S:
                process.kill()
        except psutil.Error:
            pass  # It has ended meanwhile.


@dataclass(frozen=True)
class Diagnosis:
    """Why a job makes no progress.

    Args:
        message: The reason and the positions of all ranks, for people.
        stuck_ranks: The ranks that keep the others waiting; all if they wait for each other.
        unresponsive_ranks: Those of the stuck ranks that send no heartbeats.
    """

    message: str
    stuck_ranks: tuple[int, ...] = ()
    unresponsive_ranks: tuple[int, ...] = ()


class Watchdog:
    """The watchdog of one rank.

    One thread talks to the store, and a second one diagnoses the job from the last known states: it
    keeps working when the store hangs together with the process that owns it.

    Args:
        world: The ranks of the job.
        where: Returns the position of this rank, or the one where an error was raised.
        timeout: Seconds without progress after which a job that waits is ended.
        patience: Seconds without a heartbeat after which a rank or the store is unresponsive.
        process: The process of this rank; by default the calling one.
        clock: The clock for all of these times.
        sleep: Waits for a number of seconds.
        exit_process: Ends this process at once.
    """

    def __init__(
        self,
        world: World,
        where: Callable[[BaseException | None], Place],
        timeout: float,
        *,
        patience: float | None = None,
        process: RankProcess | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        self._world = world
        self._where = where
        self._timeout = timeout
        self._patience = min(SILENCE_S, timeout / 2) if patience is None else patience
        self._clock = clock
        self._sleep = sleep
        self._exit_process = exit_process
        self._store = _connect_to_store()
        self._torchrun_owns_store = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        # A new prefix for every run: torchrun's store survives a restart, and stale failure
        # messages must not end the restarted ranks.
        self._prefix = f"hookline/{world.broadcast_str(secrets.token_hex(8))}"
        self._states: dict[int, RankState] = {}
        self._beats = 0
        self._raised: BaseException | None = None  # The error that this rank is about to exit with.
        self._exiting = False  # Whether the training thread exits with an error.
        self._report: str | None = None  # The failure that this rank has to publish.
        self._failure: str | None = None  # The failure that another rank has published.
        self._answered_at = clock()  # When the store answered last.
        self._checked_at = clock()
        self._lost_store = False
        self._hurry = threading.Event()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._publish_position()
        self._set(f"process/{world.rank}", process or RankProcess.find())
        world.barrier()  # Every rank has published before the first one reads.
        self._processes = self._read_processes()

    def start(self) -> None:
        """Start the two threads."""
        for name, target in (
            ("hookline-watchdog-store", self._exchange_until_stopped),
            ("hookline-watchdog", self._check_until_stopped),
        ):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End the threads; publish a failure that was reported before."""
        self._stopped.set()
        self._hurry.set()
        for thread in self._threads:
            thread.join(self._patience)
        if self._report is not None and self._owns_store():
            self._wait_for_readers()

    def report_failure(self, error: BaseException) -> None:
        """Let the other ranks know that this one exits with an error; the first report counts."""
        text = f"rank {self._world.rank} failed: {type(error).__name__}: {error}"
        self._report = text[:MAX_MESSAGE]

    def failed_peer(self, error: BaseException) -> str | None:
        """Return the failure of another rank that has caused this rank's error, or None."""
        started = self._clock()
        own = self._where(error)
        self._raised = error
        self._exiting = True
        self._hurry.set()
        if own.waiting:
            while not self._failure and not self._lost_store:
                if self._clock() - started >= GRACE_S:
                    break
                self._sleep(POLL_S)
            if self._failure is None:
                self._report = self._cause_of_failed_collective(own)
        self._raised = None
        return self._failure or self._report

    # The thread that talks to the store.

    def exchange(self) -> None:
        """Publish this rank's state and read those of the others, once."""
        self._publish_position()
        self._publish_failure()
        self._read_peers()
        self._answered_at = self._clock()

    def leave(self) -> None:
        """Publish that this rank has ended its run."""
        self._publish_failure()
        self._set(f"state/{self._world.rank}", {"beat": -1})

    def _exchange_until_stopped(self) -> None:
        try:
            while not self._stopped.is_set():
                self.exchange()
                self._hurry.wait(self._period())
                if self._hurry.is_set():
                    self._stopped.wait(HEARTBEAT_S / 5)
            self.leave()
        except (RuntimeError, OSError):  # The store is gone, with the process that owned it.
            self._lost_store = True

    def _publish_position(self) -> None:
        self._beats += 1
        place = self._where(self._raised)
        self._record(self._world.rank, self._beats, place)
        self._set(f"state/{self._world.rank}", {"beat": self._beats, "place": place})

    def _publish_failure(self) -> None:
        if self._report is not None:
            value = json.dumps({"rank": self._world.rank, "message": self._report})
            self._store.compare_set(f"{self._prefix}/failure", "", value)

    def _read_peers(self) -> None:
        others = [rank for rank in range(self._world.size) if rank != self._world.rank]
        notes = self._get_all([f"state/{rank}" for rank in others])
        for rank, note in zip(others, notes, strict=True):
            if note["beat"] < 0:
                self._states.pop(rank, None)
            else:
                self._record(rank, note["beat"], Place(*note["place"]))
        if self._failure is None and self._store.check([f"{self._prefix}/failure"]):
            (failure,) = self._get_all(["failure"])
            if failure["rank"] != self._world.rank:
                self._failure = failure["message"]
            self._set(f"read/{self._world.rank}", True)

    def _read_processes(self) -> list[RankProcess]:
        keys = [f"process/{rank}" for rank in range(self._world.size)]
        return [RankProcess(*process) for process in self._get_all(keys)]

    def _wait_for_readers(self) -> None:
        """Keep the store alive until the other ranks have read the failure of this one."""
        readers = [
            f"{self._prefix}/read/{rank}" for rank in self._states if rank != self._world.rank
        ]
        deadline = self._clock() + self._patience
        try:
            while self._clock() < deadline and not self._store.check(readers):
                self._sleep(POLL_S)
        except (RuntimeError, OSError):
            self._lost_store = True

    def _set(self, key: str, value: Any) -> None:
        self._store.set(f"{self._prefix}/{key}", json.dumps(value))

    def _get_all(self, keys: list[str]) -> list[Any]:
        values = self._store.multi_get([f"{self._prefix}/{key}" for key in keys])
        return [json.loads(value) for value in values]

    # The thread that diagnoses the job; it never asks the store, which may hang.

    def check(self) -> None:
        """Diagnose the job once; end this process if the job hangs or another rank has failed."""
        self._forgive_suspension()
        self._record(self._world.rank, self._beats, self._where(self._raised))
        if self._failure is not None and not self._exiting:
            # The training thread usually notices by itself.
            self._wait_until_stopped(self._patience)
            if not self._exiting:
                message = f"{self._failure}; this rank exits too"
                self._end_process(Diagnosis(message, (self._world.rank,)), prints=True)
            return
        diagnosis = self.diagnose()
        if diagnosis is not None:
            self._end_process(diagnosis, prints=self._is_first_responsive(diagnosis))

    def diagnose(self) -> Diagnosis | None:
        """Return which ranks keep the others waiting; None while a rank makes progress."""
        if self._store_hangs(self._patience):
            return self._diagnose_without_store()
        now = self._clock()
        known = self._known()
        if any(now - state.since <= self._timeout for _, state in known):
            return None
        if not any(state.place.waiting for _, state in known):
            return None
        unresponsive = self._unresponsive(known, self._patience)
        busy = [
            rank for rank, state in known if not state.place.waiting and rank not in unresponsive
        ]
        left = self._left(known)
        stuck = [rank for rank, _ in known]
        if unresponsive:
            stuck = unresponsive
            reason = _stopped_responding(_ranks(unresponsive))
        elif busy:
            stuck = busy
            reason = (
                f"{_ranks(busy)} never reached the collective that the other ranks are waiting in"
            )
        elif left:
            reason = f"{_ranks(left)} ended the run before the other ranks"
        elif not all(state.place.same(known[0][1].place) for _, state in known):
            reason = "the ranks are waiting in different collectives"
        else:
            return None  # All ranks are in one collective, or in one backward pass: it is slow.
        message = f"{reason} (no progress for {self._timeout:.0f} s). {_positions(known)}"
        return Diagnosis(message, tuple(stuck), tuple(unresponsive))

    def _diagnose_without_store(self) -> Diagnosis | None:
        own = self._states[self._world.rank]
        if not own.place.waiting or self._clock() - own.since <= self._timeout:
            return None
        unresponsive = () if self._torchrun_owns_store else (0,)
        reason = _stopped_responding(self._store_owner())
        message = f"{reason} (no progress for {self._timeout:.0f} s). This rank: {own.place.text}"
        return Diagnosis(message, unresponsive, unresponsive)

    def _check_until_stopped(self) -> None:
        while not self._stopped.wait(self._period()):
            self.check()

    def _forgive_suspension(self) -> None:
        """Restart all times if this process itself was suspended: its data is stale."""
        now = self._clock()
        if now - self._checked_at > max(SILENCE_S, self._patience):
            for rank, state in self._known():
                self._states[rank] = state._replace(heard_at=now, since=now)
            self._answered_at = now
        self._checked_at = now

    def _end_process(self, diagnosis: Diagnosis, prints: bool) -> None:
        """Log the diagnosis and exit: the training thread may never return from its collective.

        If it returns in time after all, it ends the run by itself.
        """
        if self._stopped.is_set():
            return
        log.error("%s", diagnosis.message)
        if self._failure is None:  # A rank that is slow to find out ends with this diagnosis.
            self._report = diagnosis.message[:MAX_MESSAGE]
            self._hurry.set()
        if prints:
            errors = UnfailingStream(sys.stderr)
            errors.write(f"hookline: {printable(diagnosis.message)}\n")
            errors.flush()
        if self._world.rank in diagnosis.stuck_ranks:
            faulthandler.dump_traceback()
        for handler in log.handlers:
            handler.flush()
        self._wait_until_stopped(EXIT_DELAY_S)
        if self._stopped.is_set():
            return
        for rank in diagnosis.unresponsive_ranks:
            self._processes[rank].kill()
        self._exit_process(1)

    # Knowledge that both threads share.

    def _record(self, rank: int, beat: int, place: Place) -> None:
        now = self._clock()
        before = self._states.get(rank)
        heard_at = since = now
        if before is not None and before.beat == beat:
            heard_at = before.heard_at
        if before is not None and before.place.same(place):
            since = before.since
        self._states[rank] = RankState(beat, place, heard_at, since)

    def _cause_of_failed_collective(self, own: Place) -> str | None:
        """Return why a collective failed, if another rank is the reason."""
        known = self._known()
        left = self._left(known)
        if self._store_hangs(DEAD_AFTER_S):
            if not left:
                return _stopped_responding(self._store_owner())
        else:
            dead = self._unresponsive(known, DEAD_AFTER_S)
            if dead:
                return _stopped_responding(_ranks(dead))
        if left:
            return f"{_ranks(left)} ended the run before the other ranks"
        all_waiting = all(state.place.waiting for _, state in known)
        if all_waiting and not all(state.place.same(own) for _, state in known):
            return f"the ranks entered different collectives. {_positions(known)}"
        return None

    def _known(self) -> list[tuple[int, RankState]]:
        """Return the states by rank; a copy, since the other thread may change them."""
        return sorted(self._states.copy().items())

    def _unresponsive(self, known: list[tuple[int, RankState]], seconds: float) -> list[int]:
        now = self._clock()
        return [
            rank
            for rank, state in known
            if rank != self._world.rank and now - state.heard_at > seconds
        ]

    def _left(self, known: list[tuple[int, RankState]]) -> list[int]:
        present = {rank for rank, _ in known}
        return [rank for rank in range(self._world.size) if rank not in present]

    def _is_first_responsive(self, diagnosis: Diagnosis) -> bool:
        """Return whether this rank is the one that prints the diagnosis."""
        for rank, _ in self._known():
            if rank not in diagnosis.unresponsive_ranks:
                return rank == self._world.rank
        return True

    def _store_hangs(self, seconds: float) -> bool:
        """Return whether the store does not answer, so that the states of others are unknown."""
        if self._owns_store():
            return False
        return self._lost_store or self._clock() - self._answered_at > seconds

    def _owns_store(self) -> bool:
        return self._world.rank == 0 and not self._torchrun_owns_store

    def _store_owner(self) -> str:
        return "torchrun" if self._torchrun_owns_store else "rank 0"

    def _wait_until_stopped(self, seconds: float) -> None:
        """Wait for a number of seconds, or until the watchdog is stopped."""
        deadline = self._clock() + seconds
        while self._clock() < deadline and not self._stopped.is_set():
            self._sleep(POLL_S)

    def _period(self) -> float:
        return min(HEARTBEAT_S, self._timeout / 8)


def _connect_to_store() -> Any:
    return dist.TCPStore(  # type: ignore[attr-defined]
        os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False
    )


def _positions(known: list[tuple[int, RankState]]) -> str:
    return "; ".join(f"rank {rank}: {state.place.text}" for rank, state in known)


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(str(rank) for rank in ranks)}"


def _stopped_responding(who: str) -> str:
    return f"{who} stopped responding: suspended, killed, or its machine is down"
