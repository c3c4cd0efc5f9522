"""A run from begin to end: signals, `on_exception`, `cleanup`, and notes on errors."""

from __future__ import annotations

import os
import signal
import threading
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from hookline.dist.hang_report import start_watchdog
from hookline.engine.requests import StopReason
from hookline.errors import ConfigError, PeerFailed, add_note

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(SystemExit):
    """A signal ended the run; the state is saved and everything is closed.

    The exit code is 128 plus the number of the signal.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum

    def __str__(self) -> str:
        return f"interrupted by {signal.Signals(self.signum).name}"


class RunSession:
    """The context of one `train`, `validate` or `test`.

    After an error, `on_exception` and then `cleanup` of every hook run, each isolated from failures
    of the others, and the original error propagates. Without an error only `cleanup` runs, and its
    first failure is raised.

    Args:
        runner: The run.
        is_training: Whether there are seams at which a signal can stop the run.
        handle_signals: Install signal handlers; the owner of another loop has its own.
    """

    def __init__(
        self, runner: BaseRunner, *, is_training: bool = False, handle_signals: bool = True
    ) -> None:
        self._runner = runner
        self._is_training = is_training
        self._handle_signals = handle_signals
        self._old_handlers: dict[int, Any] = {}
        self._signals: list[int] = []

    def __enter__(self) -> RunSession:
        if self._runner.running:
            raise RuntimeError("this runner is already running")
        self._runner.running = True
        is_main_thread = threading.current_thread() is threading.main_thread()
        if self._handle_signals and is_main_thread:
            for signum in HANDLED_SIGNALS:
                self._old_handlers[signum] = signal.signal(signum, self._on_signal)
        self._watchdog = start_watchdog(self._runner)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        runner = self._runner
        runner.costs.discard_sample()
        failed_peer = self._failed_peer(error)
        try:
            if error is not None:
                self._annotate(error)
                runner.exception = error
                self._call_isolated("on_exception", error)
            first_failure = self._call_isolated("cleanup", error)
        finally:
            self._stop_watchdog(error if failed_peer is None else None)
            runner.running = False
            runner.exception = None
            for signum, handler in self._old_handlers.items():
                signal.signal(signum, handler)
        if failed_peer is not None:
            raise PeerFailed(failed_peer) from error
        if isinstance(error, ConfigError):
            self._raise_located(error)
        if error is None and first_failure is not None:
            raise first_failure
        if error is None and self._signals:
            raise Interrupted(self._signals[0])

    def _raise_located(self, error: ConfigError) -> None:
        """Raise a hook's ConfigError with its place in the config, if the run comes from one."""
        for hook in self._runner.hooks:
            if hook.name == error.component:
                located = self._runner.locate_error(hook, error)
                if located is not error:
                    raise located from error

    def _failed_peer(self, error: BaseException | None) -> str | None:
        """Return what happened to another rank, if that is why this one fails."""
        if self._watchdog is None or error is None or isinstance(error, Interrupted):
            return None
        return self._watchdog.failed_peer(error)

    def _stop_watchdog(self, error: BaseException | None) -> None:
        """Stop the watchdog after cleanup. If this rank failed, report it so that others exit."""
        if self._watchdog is None:
            return
        if error is not None and not isinstance(error, Interrupted):
            self._watchdog.report_failure(error)
        self._watchdog.stop()

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        """Stop at the next seam on the first signal, and at once on the second."""
        self._signals.append(signum)
        if len(self._signals) > 1 or not self._is_training:
            signal.signal(signum, self._old_handlers[signum])
            raise Interrupted(signum)
        name = signal.Signals(signum).name
        # To the file descriptor: the signal may arrive inside a log call, which is not reentrant.
        message = f"{name}: finishing this iteration, saving and stopping; repeat to stop at once\n"
        os.write(2, message.encode())
        # Not through request_*: these are ignored while a resumed run is validated for display.
        requests = self._runner.requests
        if self._runner.checkpointer.is_open:
            requests.save("last", self._runner.checkpointer.queue, collective=False)
        requests.stop(StopReason(f"interrupted by {name}", details={"signal": name}))

    def _call_isolated(self, site: str, original: BaseException | None) -> BaseException | None:
        """Call all hooks of a site whatever they raise; return the first failure."""
        first: BaseException | None = None
        for call in self._runner.sites.calls(site):
            try:
                call(self._runner)
            except BaseException as failure:
                self._annotate(failure)
                first = first or failure
                if original is not None and failure is not original:
                    self._runner.logger.error("%s failed as well", site, exc_info=failure)
                    what = f"{type(failure).__name__}: {failure}"
                    add_note(original, f"hookline: {site} failed as well: {what}")
        return first

    def _annotate(self, error: BaseException) -> None:
        """Add a note with the hook, its site, and the iteration."""
        if isinstance(error, Interrupted):
            return
        when = self._runner.loop.position() if self._is_training else ""
        where = None
        for frame, _ in walk_tb(error.__traceback__):
            where = self._runner.sites.owner(frame.f_code) or where
        if where is not None:
            hook, site = where
            add_note(
                error, f"hookline: raised in {hook} at {site}" + (f" ({when})" if when else "")
            )
        elif when:
            add_note(error, f"hookline: raised in {when}")
