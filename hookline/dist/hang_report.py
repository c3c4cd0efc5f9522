"""Where a rank is, for the watchdog: position, phase, hook, and whether it waits in a collective."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

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

Frames = list[tuple[FrameType, int]]  # with line numbers, the innermost first


def start_watchdog(runner: Any) -> Watchdog | None:
    """Watch the other ranks of a run, and be watched; None in a single process."""
    if runner.world.size == 1 or "MASTER_ADDR" not in os.environ:
        return None
    locate = make_locator(runner, threading.get_ident(), _Movement(runner))
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
    runner: Any, thread: int, has_moved: Callable[[], bool] = lambda: False
) -> Callable[[BaseException | None], Place]:
    """Return a function that describes where a run is, or where an error was raised in it.

    Args:
        runner: The run.
        thread: The thread that trains.
        has_moved: Whether the run has moved since the last call; its stack is not read then.
    """

    def locate(error: BaseException | None = None) -> Place:
        if error is not None:
            frames = list(traceback.walk_tb(error.__traceback__))[::-1]
        elif has_moved():
            frames = []  # CPython 3.11 can crash in reading the stack of a thread that runs.
        else:
            frames = list(_walk_stack(sys._current_frames().get(thread)))  # noqa: SLF001
        progress = _progress(runner)
        when = runner.loop.position() or "before the first iteration"
        if runner.mode != "train":
            when = str(runner.mode)
        return Place(
            progress,
            f"{when}{_activity(frames, runner)}",
            _is_waiting(frames),
            _lines(frames, runner),
        )

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
    return [runner.iter, runner.epoch, runner.batch_idx, runner.optimizer_steps]


def _walk_stack(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno or 0
        frame = frame.f_back


def _activity(frames: Frames, runner: Any) -> str:
    """Describe the innermost hook with its site, or else the phase of the loop."""
    for frame, _ in frames:
        owner = runner.sites.methods.owner(frame.f_code)
        if owner is not None:
            hook, site = owner
            return f", {hook} at {site}"
    return f", {runner.loop.phase}" if runner.loop.phase else ""


def _is_waiting(frames: Frames) -> bool:
    for frame, _ in frames:
        file = frame.f_code.co_filename
        if not file.endswith(OPERATOR_PATH):
            return any(path in file for path in WAITING_PATHS)
    return False


def _lines(frames: Frames, runner: Any) -> str:
    """Return the lines up to the hook or the loop: they distinguish two collectives."""
    lines = []
    engine = os.path.dirname(sys.modules["hookline.engine"].__file__ or "") + os.sep
    for frame, line in frames:
        file = frame.f_code.co_filename
        lines.append(f"{os.path.basename(file)}:{line}")
        if file.startswith(engine) or runner.sites.methods.owner(frame.f_code) is not None:
            break
    return " ".join(lines)
