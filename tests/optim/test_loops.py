"""Eight loops by hand and the same runs: losses and weights are equal, also after a kill."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import torch

from tests.dist.processes import Job, run_job
from tests.optim.loops import (
    EPOCHS,
    KILL_AT,
    LENGTH,
    LOOPS,
    SAVE_AT,
    make_run,
    train_all,
    train_until_killed,
)


@pytest.mark.parametrize("name", LOOPS)
def test_losses_and_weights_are_bit_equal_to_the_loop_by_hand(name: str, tmp_path: Path) -> None:
    runner, recorder = make_run(name, tmp_path)
    runner.train()
    model, losses = LOOPS[name].by_hand()
    assert list(recorder.losses.values()) == losses
    for one, other in zip(runner.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.slow
def test_two_processes_with_the_same_batches_are_bit_equal_to_the_loop_by_hand(
    tmp_path: Path,
) -> None:
    for results in run_job(2, train_all, tmp_path):
        for name, result in results.items():
            model, losses = LOOPS[name].by_hand()
            assert list(result["losses"].values()) == losses, name
            for one, other in zip(result["weights"], model.parameters(), strict=True):
                assert torch.equal(one, other), name


@pytest.mark.slow
def test_each_loop_continues_bit_equal_after_it_was_killed(tmp_path: Path) -> None:
    folders = {name: tmp_path / str(index) for index, name in enumerate(LOOPS)}
    jobs = [Job(1, train_until_killed, folder, name=name) for name, folder in folders.items()]
    for job in jobs:
        job.wait()
        assert job.processes[0].exitcode == -signal.SIGKILL, job.errors()
    for name, folder in folders.items():
        runner, recorder = make_run(name, folder, resume="auto")
        runner.train()
        model, losses = LOOPS[name].by_hand()
        first = min(recorder.losses)
        assert SAVE_AT <= first <= KILL_AT, name
        assert list(recorder.losses) == list(range(first, EPOCHS * LENGTH)), name
        assert list(recorder.losses.values()) == losses[first:], name
        for one, other in zip(runner.model.parameters(), model.parameters(), strict=True):
            assert torch.equal(one, other), name


@pytest.mark.slow
def test_two_processes_continue_each_loop_bit_equal_after_they_were_killed(tmp_path: Path) -> None:
    for index, name in enumerate(LOOPS):
        job = Job(2, train_until_killed, tmp_path / str(index), name=name).wait()
        exit_codes = [process.exitcode for process in job.processes]
        assert -signal.SIGKILL in exit_codes, (name, job.errors())
        assert 0 not in exit_codes, name
    for results in run_job(2, train_all, tmp_path, resume="auto"):
        for name, result in results.items():
            model, losses = LOOPS[name].by_hand()
            first = min(result["losses"])
            assert SAVE_AT <= first <= KILL_AT, name
            assert list(result["losses"].values()) == losses[first:], name
            for one, other in zip(result["weights"], model.parameters(), strict=True):
                assert torch.equal(one, other), name
