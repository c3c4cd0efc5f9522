"""Requests to a running training: a small file in its work directory, which the run polls."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from hookline.errors import ConfigError
from hookline.report.names import CONTROL

ACTIONS = ("save", "stop")
POLL_PERIOD_S = 1.0
MAX_FILE_CHARACTERS = 1000


def send_request(folder: Path, action: str) -> None:
    """Request that the training in a folder saves or stops at its next seam."""
    if action not in ACTIONS:
        message = f"the action must be one of {', '.join(ACTIONS)}"
        raise ConfigError(message, parameter="action", value=action)
    path = folder / CONTROL
    partial = folder / f"{CONTROL}.{os.getpid()}.{threading.get_ident()}"
    requests = sorted({*_read(path), action})
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(partial, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(requests, file)
    os.replace(partial, path)


def take_requests(folder: Path) -> list[str]:
    """Return the requests since the last call, and remove them."""
    path = folder / CONTROL
    if not os.path.lexists(path):
        return []
    requests = _read(path)
    path.unlink(missing_ok=True)
    return requests


class RequestListener:
    """A thread that polls for requests, so that training does not have to.

    Args:
        folder: The work directory.
        on_request: Called from the thread with `save` or `stop`.
        period: The seconds between two polls.
    """

    def __init__(
        self, folder: Path, on_request: Callable[[str], object], period: float = POLL_PERIOD_S
    ) -> None:
        self._folder = folder
        self._on_request = on_request
        self._period = period
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="hookline-control", daemon=True)

    def start(self) -> None:
        """Discard the requests to an earlier run and start to listen."""
        take_requests(self._folder)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _listen(self) -> None:
        while not self._stop.wait(self._period):
            try:
                for action in take_requests(self._folder):
                    self._on_request(action)
            except OSError:  # An unreachable folder must not end the training.
                continue


def _read(path: Path) -> list[str]:
    """Return the valid requests in a file; none if it is not readable."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            content = json.loads(file.read(MAX_FILE_CHARACTERS))
    except (OSError, ValueError):
        return []
    if not isinstance(content, list):
        return []
    return [action for action in ACTIONS if action in content]
