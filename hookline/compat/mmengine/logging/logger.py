"""Loggers that are found by name, writing to the terminal and to a file."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from typing import Any

from hookline.compat.mmengine.utils.manager import ManagerMixin
from hookline.events.logs import LineFormatter

FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


class MMLogger(logging.Logger, ManagerMixin):
    """The logger of an experiment; `MMLogger.get_current_instance()` is the one made last."""

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
            self._add(kind(log_file, **({"mode": file_mode} if kind is logging.FileHandler else {}), **options), level)

    @classmethod
    def get_current_instance(cls) -> MMLogger:
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
    """Writes to what standard output is at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stdout


def print_log(msg: Any, logger: Any = None, level: int = logging.INFO) -> None:
    """Log with a logger, with the one of a name, with the `current` one; `silent` does nothing, None prints."""
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
        raise TypeError(f'`logger` should be either a logging.Logger object, str, "silent", "current" or None, but got {type(logger)}')
