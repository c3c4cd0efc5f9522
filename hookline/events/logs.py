"""The log file of a run, with the rank in a distributed job."""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from pathlib import Path
from typing import cast

import torch

from hookline.files import open_to_append, sync_file
from hookline.printable import printable

SILENT = logging.CRITICAL + 1  # the level of a disabled logger


class LogFile(logging.FileHandler):
    """A handler that appends to a file in the work directory of a run."""

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        self.acquire()
        try:
            if self.stream is not None:
                sync_file(self.stream)
        finally:
            self.release()

    def _open(self) -> TextIOWrapper:
        return cast(TextIOWrapper, open_to_append(Path(self.baseFilename)))


def log_file(work_dir: Path) -> LogFile:
    """Return a handler that appends to `hookline.log`, or `hookline.rank1.log` on other ranks."""
    name = "hookline.log" if rank() == 0 else f"hookline.rank{rank()}.log"
    handler = LogFile(work_dir / name)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(message)s"))
    return handler


class UserLevel(logging.Filter):
    """A filter that keeps the level of the user for all handlers but the log file.

    The logger itself passes all lines to the log file.

    Args:
        logger: The logger. Its level may be too high for the log file, or it may be disabled, as
            `logging.config.dictConfig` does with all loggers that exist.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger.name)
        self._logger = logger
        self._own_level = logger.level
        self._was_disabled = logger.disabled
        self._level = SILENT if logger.disabled else logger.getEffectiveLevel()
        logger.disabled = False
        self._handlers = _handlers_of(logger) if self._level > logging.INFO else []
        for handler in self._handlers:
            handler.addFilter(self)
        if self._level > logging.INFO:
            logger.setLevel(logging.INFO)

    def filter(self, record: logging.LogRecord) -> bool:
        return not super().filter(record) or record.levelno >= self._level

    def close(self) -> None:
        """Restore the level."""
        for handler in self._handlers:
            handler.removeFilter(self)
        if self._level > logging.INFO:
            self._logger.setLevel(self._own_level)
        self._logger.disabled = self._was_disabled


class RunLog:
    """The log file of this rank, which a logger writes to until `close`.

    The file gets all lines from the level INFO on. The other handlers keep the level of the user.
    """

    def __init__(self, logger: logging.Logger, work_dir: Path) -> None:
        self._logger = logger
        self._user_level = UserLevel(logger)
        self._file = log_file(work_dir)
        logger.addHandler(self._file)

    def log_failure(self, error: Exception, iterations: int) -> None:
        """Log an error to the file only: the console shows its traceback anyway."""
        record = self._logger.makeRecord(
            self._logger.name,
            logging.ERROR,
            __file__,
            0,
            "failed after %d iterations",
            (iterations,),
            (type(error), error, error.__traceback__),
        )
        self._file.handle(record)

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        self._file.sync()

    def close(self) -> None:
        """Close the file and restore the level of the user."""
        self._logger.removeHandler(self._file)
        self._file.close()
        self._user_level.close()


def _handlers_of(logger: logging.Logger) -> list[logging.Handler]:
    """Return the handlers that get the records of a logger."""
    handlers = list(logger.handlers)
    while logger.propagate and logger.parent is not None:
        logger = logger.parent
        handlers += logger.handlers
    return handlers


class LineFormatter(logging.Formatter):
    """A formatter that makes text printable and adds the rank, if it is not 0."""

    def format(self, record: logging.LogRecord) -> str:
        text = printable(super().format(record))
        if not rank():
            return text
        return "\n".join(f"[rank {rank()}] {line}" for line in text.split("\n"))


def rank() -> int:
    """Return the rank of this process; 0 outside distributed jobs."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK", "0") or 0)
