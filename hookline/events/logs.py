"""The package's logger: the standard library's, `hookline`; in a run also a file, and in a distributed one who says it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import torch


def log_file(work_dir: Path) -> logging.Handler:
    """A handler that appends to `hookline.log`, or to `hookline.rank1.log` where this is not the first process."""
    work_dir.mkdir(parents=True, exist_ok=True)
    name = "hookline.log" if rank() == 0 else f"hookline.rank{rank()}.log"
    handler = logging.FileHandler(work_dir / name, encoding="utf-8")
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(message)s"))
    return handler


class LineFormatter(logging.Formatter):
    """Control characters escaped; other processes than the first name themselves."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        lines = [escaped(line) for line in text.splitlines()] or [""]
        own = f"[rank {rank()}] " if rank() else ""
        return "\n".join(f"{own}{line}" for line in lines)


def escaped(text: str) -> str:
    """A text whose control characters can do nothing to a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def rank() -> int:
    """The number of this process in a distributed job; 0 where there is only one."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK", "0") or 0)
