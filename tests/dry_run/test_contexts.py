"""Collected warnings and the time limit."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from hookline.dry_run.contexts import collect_warnings, time_limit
from hookline.dry_run.findings import DryRunResult, DryRunTimeout
from tests.waiting import LIMIT_S, wait_until


def test_warnings_of_all_loggers_of_hookline_become_findings() -> None:
    result = DryRunResult()
    with collect_warnings(result):
        logging.getLogger("hookline").warning("one of %d", 2)
        logging.getLogger("hookline.checkpoint").error("two")
        logging.getLogger("hookline").info("three")
        logging.getLogger("another").warning("four")
    logging.getLogger("hookline").warning("five")
    assert [finding.text for finding in result.warnings] == ["one of 2", "two"]


def test_the_logger_is_restored(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("hookline")
    handlers = list(logger.handlers)
    with collect_warnings(DryRunResult()):
        logger.warning("hidden")
    logger.warning("visible")
    assert logger.handlers == handlers
    assert "visible" in caplog.text
    assert "hidden" not in caplog.text


def test_the_time_limit_interrupts_the_main_thread() -> None:
    previous = signal.getsignal(signal.SIGALRM)
    with pytest.raises(DryRunTimeout), time_limit(0.01):
        threading.Event().wait(60)
    assert signal.getsignal(signal.SIGALRM) == previous


@pytest.fixture
def _own_timer() -> Iterator[None]:
    """Stop the timer of pytest-timeout during a test of timers."""
    handler = signal.getsignal(signal.SIGALRM)
    remaining, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, remaining)


@pytest.mark.usefixtures("_own_timer")
def test_the_time_limit_ends_with_its_block() -> None:
    with time_limit(600):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.usefixtures("_own_timer")
def test_a_timer_of_the_caller_continues_after_the_block() -> None:
    signal.setitimer(signal.ITIMER_REAL, 500)
    with time_limit(600):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 500
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500


@pytest.mark.usefixtures("_own_timer")
def test_a_timer_of_the_caller_that_runs_out_in_the_block_ends_after_it() -> None:
    ended = threading.Event()
    signal.signal(signal.SIGALRM, lambda signum, frame: ended.set())
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    with time_limit(600):
        deadline = time.monotonic() + 0.01
        wait_until(lambda: time.monotonic() > deadline, "the end of the timer")
        assert not ended.is_set()
    assert ended.wait(LIMIT_S)


@pytest.mark.usefixtures("_own_timer")
def test_there_is_no_time_limit_in_another_thread() -> None:
    finished = []

    def work() -> None:
        with time_limit(0.001):
            finished.append(signal.getitimer(signal.ITIMER_REAL))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert finished == [(0.0, 0.0)]
