"""What holds around every run: signals, the failure contract, and who is named when something fails."""

from __future__ import annotations

import os
import signal
import threading
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from hookline.engine.dispatch import culprit
from hookline.engine.place import moment, start_watch
from hookline.errors import PeerFailed, add_note

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


class Interrupted(SystemExit):
    """A signal ended the run: state is saved and everything is closed. Its exit code is 128 + the signal's number."""

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum

    def __str__(self) -> str:
        return f"interrupted by {signal.Signals(self.signum).name}"


class Run:
    """Context of one `train`, `validate` or `test`.

    On an error every hook's `on_exception` runs, then every hook's `cleanup`, each isolated from the others' failures,
    and the original error goes on unchanged. Without one only `cleanup` runs, and its first failure surfaces.
    """

    def __init__(self, runner: BaseRunner, *, graceful: bool = False) -> None:
        self._runner = runner
        self._graceful = graceful  # whether there are seams at which a signal can be honoured
        self._old_handlers: dict[int, Any] = {}
        self._signals: list[int] = []

    def __enter__(self) -> Run:
        if self._runner.running:
            raise RuntimeError("this runner is running already")
        self._runner.running = True
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                self._old_handlers[signum] = signal.signal(signum, self._on_signal)
        self._watch = start_watch(self._runner)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        runner = self._runner
        runner.costs.drop()  # an iteration that failed is not measured
        cause = self._cause_elsewhere(error)
        try:
            if error is not None:
                self._annotate(error)
                runner.exception = error
                self._call_isolated("on_exception", error)
            first_failure = self._call_isolated("cleanup", error)
        finally:
            self._end_watch(error if cause is None else None)
            runner.running = False
            runner.exception = None
            for signum, handler in self._old_handlers.items():
                signal.signal(signum, handler)
        if cause is not None:
            raise PeerFailed(cause) from error
        if error is None and first_failure is not None:
            raise first_failure
        if error is None and self._signals:
            raise Interrupted(self._signals[0])

    def _cause_elsewhere(self, error: BaseException | None) -> str | None:
        """What happened to another process, if that is why this one fails."""
        if self._watch is None or error is None or isinstance(error, Interrupted):
            return None
        return self._watch.cause_elsewhere(error)

    def _end_watch(self, error: BaseException | None) -> None:
        """Leave the others' sight, when all is tidy here: with an error of this process's own they end as soon as they are told."""
        if self._watch is None:
            return
        if error is not None and not isinstance(error, Interrupted):
            self._watch.tell_failure(error)
        self._watch.stop()

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        """The first signal asks for a clean end at the next seam, a second one ends the run here and now."""
        self._signals.append(signum)
        if len(self._signals) > 1 or not self._graceful:
            signal.signal(signum, self._old_handlers[signum])  # and a third one is no longer ours
            raise Interrupted(signum)
        name = signal.Signals(signum).name
        # Straight to standard error: the signal may have come in the middle of a log line, and logging is not reentrant.
        os.write(2, f"{name}: finishing this iteration, saving and stopping; once more stops at once\n".encode())
        if self._runner.saver is not None:
            self._runner.request_save()
        self._runner.request_stop(f"interrupted by {name}")

    def _call_isolated(self, site: str, original: BaseException | None) -> BaseException | None:
        first: BaseException | None = None
        for call in self._runner.sites.calls(site):
            try:
                call(self._runner)
            except BaseException as failure:  # kept: it is re-raised, or reported beside the original error
                self._annotate(failure)
                first = first or failure
                if original is not None and failure is not original:
                    self._runner.logger.error("%s failed as well", site, exc_info=failure)
                    add_note(original, f"hookline: {site} failed as well: {type(failure).__name__}: {failure}")
        return first

    def _annotate(self, error: BaseException) -> None:
        runner = self._runner
        if isinstance(error, Interrupted):
            return
        where = culprit(error, runner)
        sites = [] if where is None else [where.rpartition(" at ")[2]]
        when = moment(runner, sites, list(walk_tb(error.__traceback__))) if self._graceful else ""  # an evaluation has no place in training
        if where:
            add_note(error, f"hookline: raised in {where}" + (f" ({when})" if when else ""))
        elif when:
            add_note(error, f"hookline: raised {when}" if when.startswith("after") else f"hookline: raised during {when}")
