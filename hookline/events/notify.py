"""Send short messages about a run to a webhook or a command, without waiting for them."""

from __future__ import annotations

import json
import logging
import queue
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from hookline.secrets import mask_secrets, mask_text

log = logging.getLogger(__name__)

MAX_WAITING = 100  # messages; a receiver that hangs must not fill the memory

Send = Callable[[bytes], object]


def post(url: str, timeout_s: float) -> Send:
    """Return a function that posts JSON to a webhook."""

    def send(data: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data, headers)  # noqa: S310  # checked by the hook
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
            answer.read(1)

    return send


def run(command: Sequence[str], timeout_s: float) -> Send:
    """Return a function that starts a command and passes it JSON as its input."""

    def send(data: bytes) -> None:
        subprocess.run(
            list(command), input=data, timeout=timeout_s, check=True, capture_output=True
        )

    return send


def is_webhook(url: str) -> bool:
    """Return whether text is the address of a web server."""
    try:
        parts = urlsplit(url)
    except ValueError:  # It has a bracket without its partner.
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


class Notifier:
    """A thread that sends messages in order.

    A failure is logged once and counted. Neither the text of a failure nor the address of a webhook
    is logged, because both may have secrets.

    Args:
        name: The name for log lines.
        receivers: Functions that send a message, by the words for their failures.
    """

    def __init__(self, name: str, receivers: Mapping[str, Send]) -> None:
        self._name = name
        self._receivers = dict(receivers)
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING)
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="hookline-notify", daemon=True)
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message later, with secrets masked. It is dropped if too many wait already."""
        data = json.dumps(mask_secrets(message), default=str).encode()
        try:
            self._waiting.put_nowait(data)
        except queue.Full:
            self._failures += 1

    def close(self, timeout_s: float) -> None:
        """Wait for the messages, but not longer than `timeout_s`."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            self._failures += 1
        else:
            self._thread.join(timeout_s)
        if self._thread.is_alive():
            log.warning("%s: not all messages were sent within %g s", self._name, timeout_s)
        if self._failures:
            log.warning("%s: %d messages were not delivered", self._name, self._failures)

    def _run(self) -> None:
        while (data := self._waiting.get()) is not None:
            for what, send in self._receivers.items():
                try:
                    send(data)
                except Exception as error:  # of any kind: no receiver may end the run
                    self._failures += 1
                    if self._failures == 1:
                        reason = mask_text(_reason(error))
                        log.warning("%s: %s failed: %s", self._name, what, reason)


def _reason(error: Exception) -> str:
    """Describe a failure without the command or the address."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit code {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not finished within {error.timeout:g} s"
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return f"HTTP status {code}"
    return type(error).__name__
