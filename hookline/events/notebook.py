"""Live progress in a notebook: a bar, a table and pictures that update in place in one cell."""

from __future__ import annotations

import base64
import html
import importlib
import logging
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookline.events.format import SHOWN_LAST, for_lines, format_scalars, format_value
from hookline.events.portable import portable, to_png
from hookline.streams import UnfailingStream

if TYPE_CHECKING:
    from hookline.events.console import Progress
    from hookline.events.outbox import Record

REFRESH_PERIOD_S = 0.5
MAX_ROWS = 30  # of the table; the report has all of them
MAX_PICTURES = 4  # names of pictures; the report has all of them


class NotebookView:
    """A bar with the latest scalars, a table of results, and the latest pictures.

    Its own thread redraws the bar, at no cost to iterations.
    """

    def __init__(self, run: Progress) -> None:
        ipython = importlib.import_module("IPython.display")
        self._run = run
        self._display = ipython.display
        self._as_html = ipython.HTML
        self._lock = threading.Lock()
        self._scalars: dict[str, float] = {}
        self._evaluation = ""  # the mode of the current evaluation
        self._evaluated = 0  # its batches so far
        self._batches: int | None = None  # all its batches, if their number is known
        self._rows: dict[tuple[Any, ...], dict[str, float]] = {}
        self._pictures: dict[str, Any] = {}
        self._shown = self._draw()
        self._handle = self._display(self._as_html(self._shown), display_id=True)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)
        self._thread.start()

    def show(self, scalars: Mapping[str, float]) -> None:
        """Update the scalars behind the bar."""
        with self._lock:
            self._scalars.update(for_lines(scalars))

    def begin_evaluation(self, mode: str, batches: int | None) -> None:
        """Show a bar for an evaluation until its results arrive."""
        with self._lock:
            self._evaluation = mode
            self._evaluated = 0
            self._batches = batches

    def advance_evaluation(self) -> None:
        """Count a batch of the evaluation."""
        self._evaluated += 1

    def add_row(self, mode: str, values: Mapping[str, float], iter: int, epoch: int) -> None:
        """Add results to the table; training has one row per epoch, with its latest results."""
        key = (mode, epoch) if mode == "train" else (mode, epoch, iter)
        shown: dict[str, float] = {"epoch": epoch, "iter": iter}
        for name, value in for_lines(values).items():
            if name not in SHOWN_LAST:
                shown[name.removeprefix(f"{mode}_")] = value
        with self._lock:
            self._rows[key] = shown
            if mode == self._evaluation:
                self._evaluation = ""
            if len(self._rows) > MAX_ROWS:
                self._rows.pop(next(key for key in self._rows))
        if mode != "train":
            self._update()

    def add_picture(self, record: Record) -> None:
        """Show an image or a figure in place of the earlier one of its name."""
        is_known = record.name in self._pictures
        if not is_known and len(self._pictures) == MAX_PICTURES:
            return
        try:
            png = to_png(portable(record).value)
        except ValueError:  # RecordFiles has logged the reason.
            return
        caption = html.escape(f"{record.name}, step {record.step}")
        source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        picture = self._as_html(
            f'<figure><figcaption>{caption}</figcaption><img src="{source}" '
            'style="max-width:100%"></figure>'
        )
        if is_known:
            self._pictures[record.name].update(picture)
        else:
            self._pictures[record.name] = self._display(picture, display_id=True)

    def stop(self) -> None:
        """Draw the last state and end the thread."""
        self._stopped.set()
        self._thread.join()
        self._update()

    def handler(self) -> logging.Handler:
        """Return a logging handler for lines that the table does not show."""
        handler = logging.StreamHandler(UnfailingStream(sys.stdout))
        handler.addFilter(lambda record: not getattr(record, "is_progress", False))
        return handler

    def _refresh(self) -> None:
        while not self._stopped.wait(REFRESH_PERIOD_S):
            self._update()

    def _update(self) -> None:
        with self._lock:
            drawn = self._draw()
            if drawn == self._shown:
                return
            self._shown = drawn
        self._handle.update(self._as_html(drawn))

    def _draw(self) -> str:
        bars = [self._draw_training()] if self._run.mode == "train" else []
        if self._evaluation:
            text = f"{self._evaluation}  batch {self._evaluated}/{self._batches or '?'}"
            bars.append(_bar(self._evaluated, self._batches, text))
        return f"{'<br>'.join(bars)}{self._draw_table()}"

    def _draw_training(self) -> str:
        run = self._run
        parts = [f"iteration {run.iter}/{run.max_iters or '?'}"]
        if run.max_epochs:
            parts.insert(0, f"epoch {min(run.epoch + 1, run.max_epochs)}/{run.max_epochs}")
        if self._scalars:
            parts.append(format_scalars(self._scalars))
        return _bar(run.iter, run.max_iters, "  ".join(parts))

    def _draw_table(self) -> str:
        if not self._rows:
            return ""
        names = list(dict.fromkeys(name for row in self._rows.values() for name in row))
        lines = [_table_row("th", ["", *names])]
        for key, row in self._rows.items():
            cells = [_cell(name, row.get(name)) for name in names]
            lines.append(_table_row("td", [key[0], *cells]))
        return f"<table>{''.join(lines)}</table>"


def _bar(done: int, total: int | None, text: str) -> str:
    size = f' max="{total}" value="{done}"' if total else ""
    return f'<progress style="width:16em"{size}></progress> <code>{html.escape(text)}</code>'


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else format_value(name, value)


def _table_row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
