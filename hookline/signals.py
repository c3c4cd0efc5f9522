"""Handle SIGINT, SIGTERM and SIGHUP: the first requests a stop, the second stops at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from hookline.errors import Interrupted


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop a run at its next seam."""
    signals = [signal.SIGINT, signal.SIGTERM]
    # A closed terminal or connection sends SIGHUP. `nohup` ignores it: keep it ignored.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def is_interactive() -> bool:
    """Return whether a person types Python here: in a notebook, IPython or the interpreter."""
    ipython = sys.modules.get("IPython")
    return hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)


@contextlib.contextmanager
def forward_signals(send: Callable[[int], object]) -> Iterator[list[int]]:
    """Forward stop signals to other processes; yield the list of forwarded signals.

    Args:
        send: Sends a signal to the processes.
    """
    forwarded: list[int] = []

    def forward(signum: int, frame: FrameType | None) -> None:
        forwarded.append(signum)
        send(signum)

    previous = {}
    if threading.current_thread() is threading.main_thread():
        for signum in stop_signals():
            previous[signum] = signal.signal(signum, forward)
    try:
        yield forwarded
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)


class SignalHandlers:
    """Signal handlers that are active from `install` to `restore`, in the main thread only.

    A terminal and a notebook also send a signal to the workers of a DataLoader, which inherit the
    handlers. They ignore the first one: the last iteration still needs them.

    Args:
        stop: Called with the signal's name when the first one arrives. Without it the first signal
            raises Interrupted at once.

    Attributes:
        received: The signals that have arrived.
    """

    def __init__(self, stop: Callable[[str], object] | None) -> None:
        self.received: list[int] = []
        self._stop = stop
        self._pid = os.getpid()
        self._old_handlers: dict[int, Any] = {}

    def install(self) -> None:
        """Replace the handlers of the process."""
        if threading.current_thread() is threading.main_thread():
            for signum in stop_signals():
                self._old_handlers[signum] = signal.signal(signum, self._on_signal)

    def restore(self) -> None:
        """Put the earlier handlers back."""
        for signum, handler in self._old_handlers.items():
            signal.signal(signum, handler)

    def raise_received(self) -> None:
        """Raise Interrupted if a signal has stopped the run.

        An interrupt in a notebook or an interactive interpreter ends only the call.
        """
        if self.received and not (is_interactive() and self.received[0] == signal.SIGINT):
            raise Interrupted(self.received[0])

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self.received.append(signum)
        if len(self.received) == 1 and os.getpid() != self._pid:
            return
        if len(self.received) > 1 or self._stop is None:
            signal.signal(signum, self._old_handlers[signum])
            if is_interactive() and signum == signal.SIGINT:
                raise KeyboardInterrupt  # It ends the call. SystemExit would end the session.
            raise Interrupted(signum)
        name = signal.Signals(signum).name
        # To the file descriptor: the signal may arrive inside a log call, which is not reentrant.
        message = f"{name}: finishing this iteration, saving and stopping; repeat to stop at once\n"
        with contextlib.suppress(OSError):  # The terminal may be gone.
            os.write(2, message.encode())
        self._stop(name)
