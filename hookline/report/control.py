"""Asking a running training for something: a small file in its folder, which it looks for now and then."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from hookline.report.names import CONTROL

ACTIONS = ("save", "stop")
PERIOD = 1.0  # seconds between two looks


def ask(folder: Path, action: str) -> None:
    """Have the training in a folder save or stop at its next seam."""
    if action not in ACTIONS:
        raise ValueError(f"a training can be asked to {' or '.join(ACTIONS)}, not to {action!r}")
    path = folder / CONTROL
    partial = folder / f"{CONTROL}.{os.getpid()}.{threading.get_ident()}"
    wanted = [*_read(path), action]
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(sorted(set(wanted)), file)
    os.replace(partial, path)


def take(folder: Path) -> list[str]:
    """What was asked for since the last look."""
    path = folder / CONTROL
    if not os.path.lexists(path):
        return []
    wanted = _read(path)
    path.unlink(missing_ok=True)
    return wanted


class Listener:
    """A thread that looks for requests, so that an iteration need not."""

    def __init__(self, folder: Path, on_request: Callable[[str], object], period: float = PERIOD) -> None:
        self._folder, self._on_request, self._period = folder, on_request, period
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="hookline-control", daemon=True)

    def start(self) -> None:
        take(self._folder)  # what was asked of an earlier run is not for this one
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _listen(self) -> None:
        while not self._stop.wait(self._period):
            try:
                for action in take(self._folder):
                    self._on_request(action)
            except OSError:  # the folder is away for a moment, or for good: training is worth more than its buttons
                continue


def _read(path: Path) -> list[str]:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            wanted = json.loads(file.read(1000))
    except (OSError, ValueError):
        return []
    return [action for action in ACTIONS if isinstance(wanted, list) and action in wanted]
