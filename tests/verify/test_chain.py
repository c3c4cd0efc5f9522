"""When a run is killed, and which kills count."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.manifest import read_ledger
from hookline.checkpoint.names import temporary_name
from hookline.cli.verify_resume import _print_outcome, kill_and_compare
from hookline.verify import Chain, ChainResult, run_chain
from hookline.verify.chain import KillTime, has_saved, pause_in_save
from hookline.verify.trace import write_start
from tests.clock import FakeClock
from tests.waiting import POLL_S


class Job:
    """A run that trains until its gate opens, then saves, and then trains until it is killed.

    Its time is fake: every poll of the chain takes a second, and after `polls` of them the gate
    opens. The piece with the number `pieces` exits after its save. Each piece writes to `began.txt`
    whether it has found a checkpoint.
    """

    def __init__(
        self, clock: FakeClock, polls: float = 10, pieces: int = 1, starts_over: bool = False
    ) -> None:
        self.starts_over = starts_over
        self.clock = clock
        self.polls = polls
        self.pieces = pieces
        self.started = 0
        self.polled = 0
        self.gate: int | None = None

    def launch(self, work_dir) -> int:
        self.started += 1
        self.polled = 0
        work_dir.mkdir(parents=True, exist_ok=True)
        closed, gate = os.pipe()
        process = os.fork()
        if process:
            os.close(closed)
            self.gate = gate
            return process
        os.close(gate)
        with (work_dir / "began.txt").open("a") as file:
            file.write("resumed\n" if has_saved(work_dir) else "new\n")
        write_start(work_dir, int(has_saved(work_dir) and not self.starts_over))
        os.read(closed, 1)
        save(work_dir)
        while self.started < self.pieces:
            signal.pause()
        os._exit(0)

    def sleep(self, seconds: float) -> None:
        time.sleep(POLL_S)
        self.clock.advance(1.0)
        self.polled += 1
        if self.polled == self.polls:
            self.open_gate()

    def open_gate(self) -> None:
        os.write(self.gate, b"!")
        os.close(self.gate)


def save(work_dir) -> None:
    store = CheckpointStore(work_dir)
    store.prepare()
    store.save({"state_dict": {}, "rng": {}, "meta": {}}, "last.pth", step=1, epoch=1)
    store.unlock()


@pytest.mark.parametrize("early", [0.0, 1.0])
def test_a_run_is_killed_only_when_it_has_something_to_resume_from(tmp_path, clock, early):
    job = Job(clock, pieces=4)
    times = {"span": 2.0, "limit": 1e9, "clock": clock, "sleep": job.sleep}
    result = run_chain(job.launch, tmp_path, Chain(3, early=early, in_save=0.0, **times))
    assert result.failures == []
    assert result.kills == 3
    began = (tmp_path / "began.txt").read_text().split()
    if early:  # A piece that is killed while it starts may leave no line.
        assert began[0] == "new"
        assert set(began[1:]) == {"resumed"}
    else:
        assert began == ["new", "resumed", "resumed", "resumed"]


def test_every_second_kill_is_planned_inside_a_save():
    result = ChainResult()
    planned = []
    for _ in range(6):
        kill = KillTime.draw(Chain(6, span=1.0, early=1.0), random.Random(0), result)
        planned.append(kill.delay_in_save is not None)
        assert kill.is_early != planned[-1]
        result.kills += 1
        result.kills_in_save += planned[-1]
    assert planned == [False, True, False, True, False, True]


def test_a_process_is_stopped_only_while_it_saves(tmp_path, clock):
    save(tmp_path)
    file = tmp_path / temporary_name(read_ledger(tmp_path).token)
    file.touch()
    chain = Chain(1, span=1.0, clock=clock, sleep=lambda seconds: None)
    kill = KillTime(delay=0.0, is_early=False, delay_in_save=0.02)
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as process:
        assert pause_in_save(process.pid, tmp_path, chain, kill)
        process.send_signal(signal.SIGCONT)
        file.unlink()
        assert not pause_in_save(process.pid, tmp_path, chain, kill)
        assert kill.delay_in_save == 0.01
        process.kill()


def test_a_run_that_starts_over_after_a_kill_is_a_failure(tmp_path, clock):
    job = Job(clock, pieces=2, starts_over=True)
    times = {"span": 2.0, "limit": 1e9, "clock": clock, "sleep": job.sleep}
    result = run_chain(job.launch, tmp_path, Chain(1, early=0.0, in_save=0.0, **times))
    assert "started over" in result.failures[0]


def test_a_run_that_never_saves_is_given_up(tmp_path, clock):
    job = Job(clock, polls=float("inf"))
    chain = Chain(1, span=1.0, limit=100.0, clock=clock, sleep=job.sleep)
    result = run_chain(job.launch, tmp_path, chain)
    assert result.kills == 0
    assert result.failures == ["no checkpoint within 100 s"]


def test_a_run_that_saves_at_its_end_only_is_not_reported_as_resumed(tmp_path, capsys, clock):
    def start(work_dir):
        job = Job(clock, pieces=1)
        process = job.launch(work_dir)
        job.open_gate()
        return SimpleNamespace(pid=process)

    save(tmp_path / "straight")
    launcher = SimpleNamespace(start=start)
    straight = tmp_path / "straight"
    outcome = kill_and_compare(launcher, straight, tmp_path, kills=1, seed=0, seconds=600.0)
    assert outcome.differences is None
    assert _print_outcome(outcome) == 1
    printed = capsys.readouterr().out
    assert "never resumed from a checkpoint" in printed
    assert "bit-identical" not in printed
