"""SIGHUP, which a closed terminal or connection sends, stops a run like SIGTERM."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.engine import BaseHook, Interrupted
from hookline.hooks import CheckpointHook
from hookline.signals import stop_signals
from tests.cli.helpers import command, wait_for, write_config
from tests.helpers import make_runner
from tests.waiting import LIMIT_S


class Signal(BaseHook):
    """A hook that sends signals to its own process in the third iteration."""

    def __init__(self, *signals: int) -> None:
        self.signals = signals

    def after_train_iter(self, runner):
        if runner.iter == 2:
            for signum in self.signals:
                os.kill(os.getpid(), signum)


@contextlib.contextmanager
def default_handler(signum: int) -> Iterator[None]:
    """Handle a signal as usual: shells and `nohup` ignore some for their jobs."""
    before = signal.signal(signum, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signum, before)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_stops(signum, tmp_path):
    with default_handler(signum):
        runner = make_runner(tmp_path, Signal(signum), CheckpointHook(interval=100))
        with pytest.raises(Interrupted) as caught:
            runner.train()
        assert signal.getsignal(signum) is signal.SIG_DFL
    assert caught.value.code == 128 + signum
    assert CheckpointStore(tmp_path).entries()[-1].step == 3


def test_a_signal_without_a_standard_error_saves_and_stops(tmp_path):
    saved = os.dup(2)
    os.close(2)
    try:
        with default_handler(signal.SIGHUP), pytest.raises(Interrupted):
            make_runner(tmp_path, Signal(signal.SIGHUP), CheckpointHook(interval=100)).train()
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    assert CheckpointStore(tmp_path).entries()[-1].step == 3


def test_a_run_under_nohup_continues_after_sighup(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in stop_signals()
        make_runner(tmp_path, Signal(signal.SIGHUP), CheckpointHook(), max_epochs=1).train()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert CheckpointStore(tmp_path).entries()[-1].step == 4


def test_a_run_whose_terminal_is_closed_saves_and_stops(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = command(
        "train",
        write_config(tmp_path),
        "training.epochs=100000",
        "hooks.checkpoint.interval=100000",
        stdin=theirs,
        stdout=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    screen = ""
    while "loss" not in screen:
        screen += os.read(ours, 65536).decode(errors="replace")
    os.close(ours)  # The kernel sends SIGHUP, and every write to the terminal fails.
    wait_for(process, "finishing this iteration", errors=True)
    process.communicate(timeout=LIMIT_S)
    assert process.returncode == 129
    assert CheckpointStore(tmp_path / "run").entries()


def take_terminal() -> None:
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` may have started the tests
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
