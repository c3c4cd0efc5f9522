"""Progress on the console: a live view on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Protocol

from hookline.events.format import for_lines, format_scalars
from hookline.events.logs import LineFormatter
from hookline.events.outbox import Record, Row
from hookline.events.writer import WRITERS, Writer
from hookline.streams import UnfailingStream, in_notebook, is_terminal


class Progress(Protocol):
    """The counters of a run."""

    iter: int
    epoch: int
    inner_iter: int
    epoch_length: int | None
    max_epochs: int | None
    max_iters: int | None
    mode: str | None


class View(Protocol):
    """A live display of the progress: bars on a terminal, bars and a table in a notebook."""

    def show(self, scalars: Mapping[str, float]) -> None: ...

    def begin_evaluation(self, mode: str, batches: int | None) -> None: ...

    def advance_evaluation(self) -> None: ...

    def add_row(self, mode: str, values: Mapping[str, float], iter: int, epoch: int) -> None: ...

    def add_picture(self, record: Record) -> None: ...

    def stop(self) -> None: ...

    def handler(self) -> logging.Handler: ...


@WRITERS.register("console")
class ConsoleWriter(Writer):
    """A writer of log lines to the `hookline` logger, with a live view on a terminal or a notebook.

    With a live view, the last training report of each epoch is a line. Without handlers of the
    user, lines go to the standard output, from the level of the `hookline` logger on.
    """

    def __init__(self, progress: Progress, by_epoch: bool = True, live: bool | None = None) -> None:
        self._progress = progress
        self._by_epoch = by_epoch
        self._logger = logging.getLogger("hookline")
        self._bar: View | None = None
        self._handler: logging.Handler | None = None
        self._user_level = self._logger.level
        self._last_report: tuple[int, str] | None = None  # of an epoch, not in a line yet
        self._width = 0  # of the positions, so that results of validations are below the others
        self._value_widths: dict[str, int] = {}
        if not (self._logger.handlers or logging.getLogger().handlers):
            self._attach(live)

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        if not self._logger.isEnabledFor(logging.INFO):  # Formatting costs time.
            return
        shown = for_lines(scalars) if mode == "train" else scalars
        line = self._line(mode, self._position(mode, iter, epoch), shown)
        if self._bar is not None:
            self._bar.add_row(mode, scalars, iter, epoch)
        if mode != "train" or self._bar is None:
            self._log("%s", line)
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
        if self._bar is not None:
            self._bar.add_row(row.mode, values, row.iter, row.epoch)
        self._log("%s", self._line(row.mode, f"{row.mode}  {_position_of(row)}", values))

    def write(self, record: Record) -> None:
        if self._bar is not None and record.kind in ("image", "figure"):
            self._bar.add_picture(record)

    def begin_evaluation(self, mode: str, batches: int | None) -> None:
        """Show the progress of an evaluation in a live view, without lines."""
        if self._bar is not None:
            self._bar.begin_evaluation(mode, batches)

    def advance_evaluation(self) -> None:
        """Count a batch of the evaluation."""
        if self._bar is not None:
            self._bar.advance_evaluation()

    def close(self) -> None:
        self._log_last_report()
        if self._bar is not None:
            self._bar.stop()
        if self._handler is not None:
            self._logger.removeHandler(self._handler)
            self._logger.setLevel(self._user_level)

    def _log_last_report(self) -> None:
        if self._last_report is not None:
            self._log("%s", self._last_report[1])
            self._last_report = None

    def _log(self, message: str, *values: str) -> None:
        """Log a line that a live view shows in its own way."""
        self._logger.info(message, *values, extra={"is_progress": True})

    def _line(self, mode: str, position: str, scalars: Mapping[str, float]) -> str:
        """Return a line whose position and values are as wide as those of the lines before."""
        if mode == "train":
            self._width = max(self._width, len(position))
        return f"{position.ljust(self._width)}  {format_scalars(scalars, self._value_widths)}"

    def _position(self, mode: str, finished: int, epoch: int) -> str:
        now = self._progress
        if mode != "train":
            return f"{mode}  epoch {epoch}" if self._by_epoch else f"{mode}  iter {finished}"
        is_stream = now.epoch_length is None and now.max_iters is not None
        if is_stream or not self._by_epoch:
            return f"train  iter {finished}/{now.max_iters or '?'}"
        inside = now.inner_iter + finished - now.iter
        inside = inside or now.epoch_length or 0  # The last iteration of the epoch is over.
        length, last = now.epoch_length or "?", now.max_epochs or "?"
        self._width = max(self._width, len(f"train  epoch {last}/{last}  {length}/{length}"))
        return f"train  epoch {epoch}/{last}  {inside}/{length}"

    def _attach(self, live: bool | None) -> None:
        """Attach a handler, because the user has configured no logging."""
        level = self._user_level or logging.INFO
        self._bar = _make_view(self._progress, live) if level <= logging.INFO else None
        if self._bar is not None:
            self._handler = self._bar.handler()
        else:
            self._handler = logging.StreamHandler(UnfailingStream(sys.stdout))
        self._handler.setFormatter(LineFormatter("%(message)s"))
        self._handler.setLevel(level)
        # Details, such as the times of all hooks, are in hookline.log.
        self._handler.addFilter(lambda record: not getattr(record, "is_detail", False))
        self._logger.addHandler(self._handler)
        self._logger.setLevel(min(level, logging.INFO))


def _make_view(progress: Progress, live: bool | None) -> View | None:
    """Return the live view that fits the output; None for plain lines."""
    if live is None and in_notebook():
        from hookline.events.notebook import NotebookView

        return NotebookView(progress)
    if live is None:
        live = is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    if live:
        from hookline.events.bar import ProgressBar

        return ProgressBar(progress)
    return None


def _position_of(row: Row) -> str:
    if row.mode != "train":
        return f"epoch {row.epoch}" if row.step == row.epoch else f"iter {row.iter}"
    step = "" if row.step == row.iter else f"  step {row.step}"
    return f"epoch {row.epoch}  iter {row.iter}{step}"
