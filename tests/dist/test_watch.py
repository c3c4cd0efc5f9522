"""How the watch judges: two of them in one process, over a real store, with places that the test chooses."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest
import torch.distributed as dist

from hookline.dist import World, watch
from hookline.dist.watch import Place, Watch

WORKS = Place([5, 0, 5, 5], "iteration 6, Hook at before_train_iter", False, "hook.py:7")
WAITS = Place([5, 0, 5, 5], "iteration 6, OptimizerHook at optimize", True, "graph.py:9 optimizer_hook.py:5")
ELSEWHERE = Place([5, 0, 5, 5], "iteration 6, OptimizerHook at optimize", True, "graph.py:9 optimizer_hook.py:8")
TIMEOUT = 1.0


class Pair(World):
    """One of two that are in the same process, and so need no collectives."""

    said: ClassVar[list[str]] = []
    meeting: ClassVar[threading.Barrier] = threading.Barrier(2)

    def main_says(self, text: str) -> str:
        if self.is_main:
            self.said.append(text)
        self.barrier()
        return self.said[-1]

    def barrier(self) -> None:
        self.meeting.wait(10)


class Two:
    """Two processes' watches."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.places = {0: WAITS, 1: WAITS}
        self.watches: dict[int, Watch] = {}
        self.threads: list[threading.Thread] = []
        self.start()

    def start(self) -> None:
        makers = [threading.Thread(target=self._make, args=(rank,)) for rank in (0, 1)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()

    def stop(self) -> None:
        for each in self.watches.values():
            each.stop()

    def _make(self, rank: int) -> None:
        self.watches[rank] = Watch(Pair(rank, 2), lambda error: self.places[rank], self._timeout)
        self.threads.append(self.watches[rank]._judge)


@pytest.fixture
def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    server, over = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False), threading.Event()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(server.port))
    monkeypatch.setattr(os, "_exit", lambda code: over.wait(60))  # a process that has ended says nothing more
    monkeypatch.setattr(watch.faulthandler, "dump_traceback", lambda: None)
    pair = Two(getattr(request, "param", TIMEOUT))
    yield pair
    over.set()
    pair.stop()
    for thread in pair.threads:
        thread.join(30)
        assert not thread.is_alive()  # or it might end this very process later on


def verdicts(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def wait_for_a_verdict(caplog: pytest.LogCaptureFixture) -> str:
    deadline = time.monotonic() + 15
    while not verdicts(caplog):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return verdicts(caplog)[0]


def test_processes_that_are_long_at_the_same_place_go_on(two, caplog):
    time.sleep(3 * TIMEOUT)  # a backward pass of a large model, say: nobody is missing
    assert not verdicts(caplog)


def test_waiting_counts_from_when_it_began(two, caplog):
    two.places = {0: WORKS, 1: WORKS}
    time.sleep(2 * TIMEOUT)  # both at work, for longer than one may wait for another
    two.places[0] = WAITS
    time.sleep(TIMEOUT / 2)
    assert not verdicts(caplog)


def test_a_process_that_gets_on_may_take_its_time(two, caplog):
    two.places[1] = WORKS
    for batch in range(12):
        two.places[1] = WORKS._replace(progress=[5, 0, batch, 5])
        time.sleep(TIMEOUT / 4)
    assert not verdicts(caplog)


def test_a_process_that_works_at_one_thing_for_too_long_is_blamed(two, caplog):
    two.places[1] = WORKS
    assert wait_for_a_verdict(caplog).startswith("process 1 did not come to where the others wait; nothing moved for 1 s")


def test_one_whose_run_ends_after_all_is_not_ended(two, caplog, monkeypatch):
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    two.places[1] = WORKS
    wait_for_a_verdict(caplog)
    two.stop()  # before the time is over that the others have to come to the same verdict
    for thread in two.threads:
        thread.join()
    assert codes == []


def test_two_collectives_of_one_hook_are_different_places(two, caplog):
    two.places[1] = ELSEWHERE
    assert "wait for each other at different places" in wait_for_a_verdict(caplog)


def test_a_process_that_has_ended_its_run_is_not_waited_for(two, caplog):
    two.watches[1].stop()
    assert wait_for_a_verdict(caplog).startswith("process 1 ended its run before the others")


@pytest.mark.parametrize("two", [60.0], indirect=True)
def test_an_error_of_a_collective_is_told_with_both_places(two):
    two.places[1] = ELSEWHERE
    causes: dict[int, str | None] = {}
    threads = [
        threading.Thread(target=lambda rank=rank: causes.setdefault(rank, two.watches[rank].cause_elsewhere(RuntimeError("gloo"))))
        for rank in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert causes[0] == causes[1] == f"the processes met at different places: process 0: {WAITS.text}; process 1: {ELSEWHERE.text}"


def test_a_run_after_one_that_failed_knows_nothing_of_it(two):
    two.watches[1].tell_failure(ValueError("of the first run"))
    two.stop()
    two.start()  # with the same store, which torchrun keeps from one start of the processes to the next
    time.sleep(TIMEOUT)
    two.places[0] = WORKS
    assert two.watches[0].cause_elsewhere(ValueError("its own")) is None
