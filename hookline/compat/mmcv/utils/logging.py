"""Loggers that write to the terminal and to a file."""

from __future__ import annotations

import logging
from typing import Any

from hookline.dist import current_world

_configured: set[str] = set()  # names of the loggers that have handlers


def get_logger(
    name: str, log_file: str | None = None, log_level: int = logging.INFO, file_mode: str = "w"
) -> logging.Logger:
    """Return a logger that writes to the terminal and, on rank 0, to `log_file`.

    A logger that exists, and each logger below it, keeps its handlers.
    """
    logger = logging.getLogger(name)
    for known in _configured:
        if name == known or name.startswith(f"{known}."):
            return logger
    is_main = current_world().is_main
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if is_main and log_file is not None:
        handlers.append(logging.FileHandler(log_file, file_mode))
    formatter = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s")
    for handler in handlers:
        handler.setFormatter(formatter)
        handler.setLevel(log_level)
        logger.addHandler(handler)
    logger.setLevel(log_level if is_main else logging.ERROR)
    _configured.add(name)
    return logger


def print_log(
    msg: Any, logger: logging.Logger | str | None = None, level: int = logging.INFO
) -> None:
    """Log a message.

    Args:
        msg: The message.
        logger: A logger, its name, None for the terminal, or `silent` for no output.
        level: The level, for a logger.
    """
    if logger is None:
        print(msg)
    elif isinstance(logger, logging.Logger):
        logger.log(level, msg)
    elif logger != "silent":
        get_logger(logger).log(level, msg)
