"""Loggers by name, with a stream and, if wanted, a file."""

from __future__ import annotations

import logging
from typing import Any

from hookline.dist import current_world

_ready: dict[str, bool] = {}


def get_logger(name: str, log_file: str | None = None, log_level: int = logging.INFO, file_mode: str = "w") -> logging.Logger:
    """A logger that writes to the terminal and, on the main process, to `log_file`; the same one for the same name."""
    logger = logging.getLogger(name)
    if any(name == known or name.startswith(f"{known}.") for known in _ready):
        return logger
    is_main = current_world().is_main
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if is_main and log_file is not None:
        handlers.append(logging.FileHandler(log_file, file_mode))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s"))
        handler.setLevel(log_level)
        logger.addHandler(handler)
    logger.setLevel(log_level if is_main else logging.ERROR)
    _ready[name] = True
    return logger


def print_log(msg: Any, logger: logging.Logger | str | None = None, level: int = logging.INFO) -> None:
    """To a logger, to one by its name, to the terminal (None), or nowhere (`silent`)."""
    if logger is None:
        print(msg)
    elif isinstance(logger, logging.Logger):
        logger.log(level, msg)
    elif logger != "silent":
        get_logger(logger).log(level, msg)
