"""The context of a run: signals, the watchdog, `on_exception`, `cleanup`, notes on errors."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from hookline.dist.hang_report import find_failed_peer, start_watchdog, stop_watchdog
from hookline.errors import ConfigError, Interrupted, PeerFailed, add_note
from hookline.signals import SignalHandlers
from hookline.stop_reason import StopReason

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


class RunSession:
    """The context of one `train`, `validate` or `test`.

    After an error, `on_exception` and then `cleanup` of every hook run, each isolated from failures
    of the others, and the original error propagates. Without an error only `cleanup` runs, and its
    first failure is raised. A signal stops training at the next seam, and an evaluation at once.
    """

    def __init__(
        self, runner: BaseRunner, *, is_training: bool = False, handle_signals: bool = True
    ) -> None:
        self._runner = runner
        self._is_training = is_training
        self._handle_signals = handle_signals
        self._signals = SignalHandlers(self._stop_on_signal if is_training else None)

    def __enter__(self) -> RunSession:
        if self._runner.loop.is_running:
            raise RuntimeError("this runner is already running")
        self._runner.loop.is_running = True
        if self._handle_signals:
            self._signals.install()
        self._watchdog = start_watchdog(self._runner)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        runner = self._runner
        runner.sites.costs.discard_sample()
        failed_peer = find_failed_peer(self._watchdog, error)
        try:
            if error is not None:
                self._annotate(error)
                runner.exception = error
                self._call_isolated("on_exception", error)
            first_failure = self._call_isolated("cleanup", error)
            runner.checkpointer.finish_mirror(error)
        finally:
            stop_watchdog(self._watchdog, error if failed_peer is None else None)
            runner.loop.is_running = False
            runner.exception = None
            self._signals.restore()
        if failed_peer is not None:
            raise PeerFailed(failed_peer) from error
        if isinstance(error, ConfigError):
            self._raise_located(error)
        if error is None and first_failure is not None:
            raise first_failure
        if error is None:
            self._signals.raise_received()

    def _raise_located(self, error: ConfigError) -> None:
        """Raise a hook's ConfigError with its location in the config, if it has one."""
        for hook in self._runner.hooks:
            if hook.name == error.component:
                located = self._runner.sites.locate_error(hook, error)
                if located is not error:
                    raise located from error

    def _stop_on_signal(self, name: str) -> None:
        """Save and stop at the next seam."""
        # Not runner.request_*, which are ignored while a resumed run is validated for display.
        requests = self._runner.loop.requests
        if self._runner.checkpointer.is_open:
            requests.save("last", self._runner.checkpointer.queue, collective=False)
        requests.stop(StopReason(f"interrupted by {name}", details={"signal": name}))

    def _call_isolated(self, site: str, original: BaseException | None) -> BaseException | None:
        """Call all hooks of a site even if some fail; return the first failure."""
        first: BaseException | None = None
        for call in self._runner.sites.calls(site):
            try:
                call(self._runner)
            except BaseException as failure:
                self._annotate(failure)
                first = first or failure
                if original is not None and failure is not original:
                    self._runner.logger.error("%s failed as well", site, exc_info=failure)
                    reason = f"{type(failure).__name__}: {failure}"
                    add_note(original, f"hookline: {site} failed as well: {reason}")
        return first

    def _annotate(self, error: BaseException) -> None:
        """Add a note with the hook, its site and the iteration."""
        if not isinstance(error, Interrupted):
            when = self._runner.loop.position() if self._is_training else ""
            self._runner.sites.methods.annotate(error, when)
