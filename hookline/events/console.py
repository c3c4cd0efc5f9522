"""Progress on the console: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from hookline.events.format import for_lines, format_scalars
from hookline.events.logs import LineFormatter
from hookline.events.outbox import Row
from hookline.events.writer import WRITERS, Writer
from hookline.streams import UnfailingStream, is_terminal


class Progress(Protocol):
    """The counters of a run."""

    iter: int
    epoch: int
    inner_iter: int
    epoch_length: int | None
    max_epochs: int | None
    max_iters: int | None


@WRITERS.register("console")
class ConsoleWriter(Writer):
    """A writer of log lines to the `hookline` logger, with a progress bar on a terminal.

    A terminal with a bar shows the last training report of each epoch as a line. Without handlers
    of the user, lines go to the standard output, from the level of the `hookline` logger on.
    """

    def __init__(self, progress: Progress, by_epoch: bool = True, live: bool | None = None) -> None:
        self._progress = progress
        self._by_epoch = by_epoch
        self._logger = logging.getLogger("hookline")
        self._bar: Any = None
        self._handler: logging.Handler | None = None
        self._user_level = self._logger.level
        self._last_report: tuple[int, str] | None = None  # of an epoch, not in a line yet
        if not (self._logger.handlers or logging.getLogger().handlers):
            self._attach(is_terminal(sys.stdout) if live is None else live)

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        if not self._logger.isEnabledFor(logging.INFO):  # Formatting costs time.
            return
        shown = format_scalars(for_lines(scalars) if mode == "train" else scalars)
        line = f"{self._position(mode, iter, epoch)}  {shown}"
        if mode != "train" or self._bar is None:
            self._logger.info("%s", line)
            return
        self._bar.show(scalars)
        if self._last_report is not None and self._last_report[0] != epoch:
            self._log_last_report()
        self._last_report = (epoch, line)

    def write_row(self, row: Row) -> None:
        values = for_lines(row.values) if row.mode == "train" else row.values
        if not values or not self._logger.isEnabledFor(logging.INFO):
            return
        if row.mode == "train" and self._bar is not None:
            self._bar.show(values)
            return
        self._log_last_report()
        self._logger.info("%s  %s  %s", row.mode, _position_of(row), format_scalars(values))

    def close(self) -> None:
        self._log_last_report()
        if self._bar is not None:
            self._bar.stop()
        if self._handler is not None:
            self._logger.removeHandler(self._handler)
            self._logger.setLevel(self._user_level)

    def _log_last_report(self) -> None:
        if self._last_report is not None:
            self._logger.info("%s", self._last_report[1])
            self._last_report = None

    def _position(self, mode: str, finished: int, epoch: int) -> str:
        now = self._progress
        if mode != "train":
            return f"{mode}  epoch {epoch}" if self._by_epoch else f"{mode}  iter {finished}"
        if not self._by_epoch:
            return f"train  iter {finished}/{now.max_iters or '?'}"
        inside = now.inner_iter + finished - now.iter
        inside = inside or now.epoch_length or 0  # The last iteration of the epoch is over.
        return f"train  epoch {epoch}/{now.max_epochs or '?'}  {inside}/{now.epoch_length or '?'}"

    def _attach(self, live: bool) -> None:
        """Attach a handler, because the user has configured no logging."""
        level = self._user_level or logging.INFO
        if live and level <= logging.INFO:
            from hookline.events.bar import ProgressBar

            self._bar = ProgressBar(self._progress)
            self._handler = self._bar.handler()
        else:
            self._handler = logging.StreamHandler(UnfailingStream(sys.stdout))
        self._handler.setFormatter(LineFormatter("%(message)s"))
        self._handler.setLevel(level)
        self._logger.addHandler(self._handler)
        self._logger.setLevel(min(level, logging.INFO))


def _position_of(row: Row) -> str:
    if row.mode != "train":
        return f"epoch {row.epoch}" if row.step == row.epoch else f"iter {row.iter}"
    step = "" if row.step == row.iter else f"  step {row.step}"
    return f"epoch {row.epoch}  iter {row.iter}{step}"
