"""The diagnoses of the watchdog: two of them in one process, over a real store, with a fake clock."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
import torch.distributed as dist

from hookline.dist import World
from hookline.dist.watchdog import HEARTBEAT_S, Diagnosis, Place, RankProcess, Watchdog
from tests.clock import FakeClock
from tests.waiting import LIMIT_S

WORKS = Place([5, 0, 5, 5], "iteration 6, Hook at before_train_iter", False, "hook.py:7")
WAITS = Place([5, 0, 5, 5], "iteration 6, OptimizerHook at optimize", True, "graph.py:9 hook.py:5")
ELSEWHERE = WAITS._replace(lines="graph.py:9 hook.py:8")
TIMEOUT = 90.0
SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


class Pair(World):
    """One of two ranks that are in the same process and need no collectives."""

    texts: ClassVar[list[str]] = []
    meeting: ClassVar[threading.Barrier] = threading.Barrier(2)

    def broadcast_str(self, text: str) -> str:
        if self.is_main:
            self.texts.append(text)
        self.barrier()
        return self.texts[-1]

    def barrier(self) -> None:
        self.meeting.wait(LIMIT_S)


class Job:
    """The watchdogs of two ranks; a child process stands for each rank."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.places = {0: WAITS, 1: WAITS}
        self.exits: dict[int, float] = {}
        self.meanwhile: Callable[[], object] = lambda: None  # Happens while a watchdog sleeps.
        self.processes = {rank: subprocess.Popen(SLEEPER) for rank in (0, 1)}
        self.start()

    def start(self) -> None:
        self.watchdogs: dict[int, Watchdog] = {}
        makers = [threading.Thread(target=self._make, args=(rank,), daemon=True) for rank in (0, 1)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join(LIMIT_S)
            assert not maker.is_alive()

    def run(self, seconds: float, *ranks: int) -> None:
        """Let time pass in which these ranks (by default both) send heartbeats and check."""
        end = self.clock() + seconds
        while self.clock() < end:
            self.clock.advance(HEARTBEAT_S)
            for rank in ranks or (0, 1):
                if rank not in self.exits:
                    self.watchdogs[rank].exchange()
                    self.watchdogs[rank].check()

    def diagnoses(self) -> list[Diagnosis | None]:
        return [self.watchdogs[rank].diagnose() for rank in (0, 1)]

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _make(self, rank: int) -> None:
        self.watchdogs[rank] = Watchdog(
            Pair(rank, 2),
            lambda error: self.places[rank],
            TIMEOUT,
            process=RankProcess.find(self.processes[rank].pid),
            clock=self.clock,
            sleep=self._sleep,
            exit_process=lambda code: self.exits.setdefault(rank, self.clock()),
        )

    def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.meanwhile()


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> Iterator[Job]:
    store: Any = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    job = Job(clock)
    yield job
    job.end()


def test_ranks_that_are_long_in_the_same_collective_continue(job):
    job.run(10 * TIMEOUT)
    assert job.diagnoses() == [None, None]
    assert job.exits == {}


def test_waiting_counts_from_when_it_began(job):
    job.places = {0: WORKS, 1: WORKS}
    job.run(2 * TIMEOUT)
    job.places[0] = WAITS
    job.run(TIMEOUT - 1)
    assert job.diagnoses() == [None, None]
    job.run(6)
    assert set(job.exits) == {0, 1}


def test_a_rank_that_makes_progress_may_take_its_time(job):
    for batch in range(12):
        job.places[1] = WORKS._replace(progress=[5, 0, batch, 5])
        job.run(TIMEOUT / 4)
    assert job.diagnoses() == [None, None]


def test_a_rank_that_works_for_too_long_in_one_place_is_stuck(job, caplog, capfd):
    job.places[1] = WORKS
    job.run(TIMEOUT + 5)
    assert [diagnosis.stuck_ranks for diagnosis in job.diagnoses()] == [(1,), (1,)]
    message = (
        "rank 1 never reached the collective that the other ranks are waiting in (no progress for "
        f"90 s). rank 0: {WAITS.text}; rank 1: {WORKS.text}"
    )
    assert caplog.messages == [message, message]
    printed = capfd.readouterr().err
    assert printed.count(message) == 1  # The first rank prints it, and both log it.
    assert "test_watchdog.py" in printed  # The stack of the stuck rank.
    assert all(process.poll() is None for process in job.processes.values())


def test_a_run_that_ends_in_time_after_all_is_not_ended_by_the_watchdog(job, caplog):
    def stop() -> None:
        for watchdog in job.watchdogs.values():
            watchdog.stop()

    job.meanwhile = stop  # Between the diagnosis and the exit.
    job.places[1] = WORKS
    job.run(TIMEOUT + 5)
    assert len(caplog.messages) == 1
    assert job.exits == {}


def test_two_collectives_of_one_hook_are_different_places(job):
    job.places[1] = ELSEWHERE
    job.run(TIMEOUT + 5)
    assert [diagnosis.stuck_ranks for diagnosis in job.diagnoses()] == [(0, 1), (0, 1)]


def test_a_rank_that_has_ended_its_run_is_not_waited_for(job):
    job.watchdogs[1].leave()
    job.run(TIMEOUT + 1, 0)
    assert set(job.exits) == {0}
    assert job.watchdogs[0].diagnose().message.startswith("rank 1 ended the run before")


def test_a_suspended_rank_ends_the_job_soon_after_the_timeout_and_is_killed(job):
    job.run(1)
    stopped_at = job.clock()
    job.run(TIMEOUT + 1, 0)
    assert job.exits[0] - stopped_at < TIMEOUT + 10
    assert job.watchdogs[0].diagnose().unresponsive_ranks == (1,)
    assert job.processes[1].wait(LIMIT_S) == -9
    assert job.processes[0].poll() is None


def test_a_rank_that_was_suspended_itself_does_not_blame_the_others(job):
    job.run(1)
    job.clock.advance(10 * TIMEOUT)  # As after Ctrl-Z and fg.
    for watchdog in job.watchdogs.values():
        watchdog.check()
    job.run(1)
    assert job.diagnoses() == [None, None]
    assert job.exits == {}


def test_a_store_that_stops_responding_is_diagnosed_without_it(job):
    job.run(1)
    elapsed = 0.0
    while elapsed < TIMEOUT + 1:
        job.clock.advance(HEARTBEAT_S)
        elapsed += HEARTBEAT_S
        job.watchdogs[1].check()  # Its exchange hangs.
    assert set(job.exits) == {1}
    assert job.watchdogs[1].diagnose().unresponsive_ranks == (0,)
    assert job.processes[0].wait(LIMIT_S) == -9


def failed_peers(job: Job, *ranks: int) -> list[str | None]:
    """Return the causes that ranks find whose collective has failed; only they send heartbeats."""

    def exchange() -> None:
        for rank in ranks:
            job.watchdogs[rank].exchange()

    job.meanwhile = exchange
    return [job.watchdogs[rank].failed_peer(RuntimeError("gloo")) for rank in ranks]


def test_a_failed_collective_is_explained_by_the_places_of_both(job):
    job.places[1] = ELSEWHERE
    job.run(1)
    first, second = failed_peers(job, 0, 1)
    assert first == second
    assert f"rank 0: {WAITS.text}; rank 1: {ELSEWHERE.text}" in first


def test_a_dead_rank_ends_the_others_within_five_seconds(job):
    job.run(1)
    died_at = job.clock()
    (cause,) = failed_peers(job, 0)
    assert cause.startswith("rank 1 stopped responding")
    assert job.clock() - died_at < 5


def test_a_rank_reports_its_failure_to_the_others(job):
    job.places[1] = WORKS
    job.run(1)
    assert job.watchdogs[1].failed_peer(ValueError("only here")) is None
    job.watchdogs[1].report_failure(ValueError("only here"))
    job.watchdogs[1].leave()
    assert failed_peers(job, 0) == ["rank 1 failed: ValueError: only here"]


def test_the_owner_of_the_store_waits_until_its_failure_is_read(job):
    job.run(1)
    job.watchdogs[0].report_failure(ValueError("only here"))
    job.watchdogs[0].leave()
    looks: list[str] = []

    def read_late() -> None:
        looks.append("not yet")
        if len(looks) == 4:
            job.watchdogs[1].exchange()

    job.meanwhile = read_late
    job.watchdogs[0].stop()
    assert len(looks) == 4
    assert job.watchdogs[1].failed_peer(RuntimeError("gloo")).endswith("only here")


def test_a_run_after_one_that_failed_knows_nothing_of_it(job):
    job.watchdogs[1].report_failure(ValueError("of the first run"))
    job.watchdogs[1].leave()
    job.start()  # With the same store, which torchrun keeps from one start to the next.
    job.places[0] = WORKS
    job.run(1)
    assert job.watchdogs[0].failed_peer(ValueError("its own")) is None
