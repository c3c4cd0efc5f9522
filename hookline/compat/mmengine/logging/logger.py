"""Loggers by name, which write to the terminal and to a file."""

from __future__ import annotations

import logging
import sys
from typing import Any

from hookline.compat.mmengine.utils import ManagerMixin
from hookline.events.logs import LineFormatter

FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


class MMLogger(logging.Logger, ManagerMixin):
    """The logger of an experiment."""

    def __init__(
        self,
        name: str,
        logger_name: str = "mmengine",
        log_file: str | None = None,
        log_level: int | str = "INFO",
    ) -> None:
        logging.Logger.__init__(self, logger_name)
        ManagerMixin.__init__(self, name)
        self._add(_ToStdout(), log_level)
        if log_file is not None:
            self._add(logging.FileHandler(log_file), log_level)

    def setLevel(self, level: int | str) -> None:
        """Set the level, which holds at once: a logger remembers the levels that it logs."""
        super().setLevel(level)
        self._cache.clear()  # type: ignore[attr-defined]

    def _add(self, handler: logging.Handler, level: int | str) -> None:
        handler.setLevel(level)
        handler.setFormatter(LineFormatter(FORMAT, datefmt="%Y/%m/%d %H:%M:%S"))
        self.addHandler(handler)


class _ToStdout(logging.StreamHandler):  # type: ignore[type-arg]  # generic since Python 3.11
    """A handler for the current `sys.stdout`, which may have been replaced."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stdout


def print_log(msg: Any, logger: Any = None, level: int = logging.INFO) -> None:
    """Log a message.

    Args:
        msg: The message.
        logger: A logger, `current` for the newest one, or None to print.
        level: The level, for a logger.
    """
    if logger is None:
        print(msg)
    elif logger == "current":
        MMLogger.get_current_instance().log(level, msg)
    else:
        logger.log(level, msg)
