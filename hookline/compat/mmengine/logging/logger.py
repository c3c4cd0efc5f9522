"""Loggers by name, which write to the terminal and to a file."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from typing import Any

from hookline.compat.mmengine.utils.manager import ManagerMixin
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
        file_mode: str = "w",
        distributed: bool = False,
        file_handler_cfg: dict[str, Any] | None = None,
    ) -> None:
        logging.Logger.__init__(self, logger_name)
        ManagerMixin.__init__(self, name)
        self.log_file = log_file
        level = logging.getLevelName(log_level) if isinstance(log_level, str) else log_level
        self._add(_ToStdout(), level)
        if log_file is not None:
            options = dict(file_handler_cfg or {})
            name = options.pop("type", "FileHandler")
            kind = getattr(logging, name, None) or getattr(logging.handlers, name)
            if kind is logging.FileHandler:
                options.setdefault("mode", file_mode)
            self._add(kind(log_file, **options), level)

    @classmethod
    def get_current_instance(cls) -> MMLogger:
        """Return the newest logger."""
        if not cls._instance_dict:
            cls.get_instance("mmengine")
        return super().get_current_instance()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Release the log file."""
        for handler in self.handlers:
            if isinstance(handler, logging.FileHandler):
                handler.close()

    def _add(self, handler: logging.Handler, level: int) -> None:
        handler.setLevel(level)
        handler.setFormatter(LineFormatter(FORMAT, datefmt="%Y/%m/%d %H:%M:%S"))
        self.addHandler(handler)


class _ToStdout(logging.StreamHandler[Any]):
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
        logger: A logger, its name, `current` for the newest one, None to print, or `silent` for no
            output.
        level: The level, for a logger.
    """
    if logger is None:
        print(msg)
    elif isinstance(logger, logging.Logger):
        logger.log(level, msg)
    elif logger == "current":
        MMLogger.get_current_instance().log(level, msg)
    elif isinstance(logger, str) and logger != "silent":
        if not MMLogger.check_instance_created(logger):
            raise ValueError(f"MMLogger: {logger} has not been created!")
        MMLogger.get_instance(logger).log(level, msg)
    elif logger != "silent":
        raise TypeError(
            '`logger` should be either a logging.Logger object, str, "silent", "current" or None, '
            f"but got {type(logger)}"
        )
