"""The first signal is a request, the second one ends the run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from hookline.errors import Interrupted
from hookline.signals import SignalHandlers


@pytest.fixture
def ignored() -> Iterator[None]:
    """Ignore SIGTERM outside the handlers that are tested."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGTERM, before)


def test_the_first_signal_requests_a_stop_and_the_second_raises(ignored: None) -> None:
    requests: list[str] = []
    handlers = SignalHandlers(requests.append)
    handlers.install()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests == ["SIGTERM"]
        with pytest.raises(Interrupted) as caught:
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        handlers.restore()
    assert caught.value.signum == signal.SIGTERM
    assert handlers.received == [signal.SIGTERM, signal.SIGTERM]


def test_without_a_seam_to_stop_at_the_first_signal_raises(ignored: None) -> None:
    handlers = SignalHandlers(None)
    handlers.install()
    try:
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        handlers.restore()


def test_the_earlier_handlers_come_back(ignored: None) -> None:
    handlers = SignalHandlers(None)
    handlers.install()
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
    handlers.restore()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_another_thread_changes_no_handlers(ignored: None) -> None:
    handlers = SignalHandlers(None)
    thread = threading.Thread(target=handlers.install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_a_worker_ignores_the_first_signal_and_prints_nothing(
    ignored: None, capfd: pytest.CaptureFixture[str]
) -> None:
    requests: list[str] = []
    handlers = SignalHandlers(requests.append)
    handlers.install()
    worker = os.fork()
    if worker == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        is_ignored = requests == []
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except Interrupted:
            os._exit(0 if is_ignored else 1)
        os._exit(2)
    handlers.restore()
    _, status = os.waitpid(worker, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert capfd.readouterr().err == ""
