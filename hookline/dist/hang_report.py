"""The location of a rank, for the watchdog: position, phase, hook, waiting in a collective."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from hookline.dist.stack_reader import StackReader
from hookline.dist.watchdog import Place, Watchdog
from hookline.errors import Interrupted

# Code from which a rank waits for the others if that is where it has left Python: collectives, the
# backward pass (gradients are exchanged) and DDP's forward (it broadcasts buffers).
WAITING_PATHS = (
    os.path.join("torch", "distributed", ""),
    os.path.join("torch", "autograd", "graph"),
    os.path.join("torch", "nn", "parallel", ""),
)
OPERATOR_PATH = os.path.join("torch", "_ops.py")  # the way into operators, collectives included

Lines = list[tuple[str, int]]  # the file and line of each call, the innermost first


def start_watchdog(runner: Any) -> Watchdog | None:
    """Watch the other ranks of a run, and be watched; None in a single process."""
    if runner.world.size == 1 or "MASTER_ADDR" not in os.environ:
        return None
    locate = make_locator(runner, StackReader(threading.get_ident()).read, _Movement(runner))
    watchdog = Watchdog(runner.world, locate, runner.parallel.strategy.timeout)
    watchdog.start()
    return watchdog


def find_failed_peer(watchdog: Watchdog | None, error: BaseException | None) -> str | None:
    """Return what happened to another rank, if that is why this one fails."""
    if watchdog is None or error is None or isinstance(error, Interrupted):
        return None
    return watchdog.failed_peer(error)


def stop_watchdog(watchdog: Watchdog | None, error: BaseException | None) -> None:
    """Stop the watchdog after cleanup. If this rank failed, report it so that others exit."""
    if watchdog is None:
        return
    if error is not None and not isinstance(error, Interrupted):
        watchdog.report_failure(error)
    watchdog.stop()


def make_locator(
    runner: Any,
    read_stack: Callable[[], Lines],
    has_moved: Callable[[], bool] = lambda: False,
) -> Callable[[BaseException | None], Place]:
    """Return a function that describes where a run is, or where an error was raised in it.

    Args:
        runner: The run.
        read_stack: Returns the lines that the training thread executes.
        has_moved: Whether the run has moved since the last call. Its stack is not read then: only
            that of a run that waits is of interest.
    """

    def locate(error: BaseException | None = None) -> Place:
        lines: Lines = []
        if error is not None:
            trace = traceback.walk_tb(error.__traceback__)
            lines = [(frame.f_code.co_filename, line) for frame, line in trace][::-1]
        elif not has_moved():
            lines = read_stack()
        when = runner.loop.position() or "before the first iteration"
        if runner.mode != "train":
            when = str(runner.mode)
        text = f"{when}{_activity(lines, runner)}"
        return Place(_progress(runner), text, _is_waiting(lines), _call_path(lines, runner))

    return locate


class _Movement:
    """Whether a run has made progress since the last call."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._last: list[int] = []

    def __call__(self) -> bool:
        before, self._last = self._last, _progress(self._runner)
        return self._last != before


def _progress(runner: Any) -> list[int]:
    """Return the counters of a run. The other ranks wait while rank 0 copies a mirror."""
    mirror = runner.checkpointer.mirror
    received = 0 if mirror is None else mirror.movement
    return [runner.iter, runner.epoch, runner.batch_idx, runner.optimizer_steps, received]


def _activity(lines: Lines, runner: Any) -> str:
    """Describe the innermost hook with its site, or else the phase of the loop."""
    for file, line in lines:
        owner = runner.sites.methods.owner_at(file, line)
        if owner is not None:
            hook, site = owner
            return f", {hook} at {site}"
    return f", {runner.loop.phase}" if runner.loop.phase else ""


def _is_waiting(lines: Lines) -> bool:
    for file, _ in lines:
        if not file.endswith(OPERATOR_PATH):
            return any(path in file for path in WAITING_PATHS)
    return False


def _call_path(lines: Lines, runner: Any) -> str:
    """Return the lines up to the hook or the loop: they distinguish two collectives."""
    path = []
    engine = os.path.dirname(sys.modules["hookline.engine"].__file__ or "") + os.sep
    for file, line in lines:
        path.append(f"{os.path.basename(file)}:{line}")
        if file.startswith(engine) or runner.sites.methods.owner_at(file, line) is not None:
            break
    return " ".join(path)
