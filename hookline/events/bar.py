"""The progress on a terminal: a line for training and one for evaluation, below the log lines.

Its own thread reads the counters of training, at no cost to iterations.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any, cast

from rich.console import Console, ConsoleRenderable, RenderableType
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from hookline.events.format import SHOWN_LAST, for_lines, format_scalars
from hookline.streams import UnfailingStream

if TYPE_CHECKING:
    from hookline.events.console import Progress as RunProgress
    from hookline.events.outbox import Record

BAR_WIDTH = 16  # columns
STYLES = {"train": "cyan", "val": "green", "test": "green"}


class ProgressBar(Progress):
    """A line for training, with the rate and the remaining time, and one for evaluation.

    Each has the latest scalars of its mode. The line for evaluation appears with the first one and
    keeps its results.
    """

    def __init__(self, run: RunProgress) -> None:
        self._run = run  # Set first: rich renders during its constructor.
        self._train: TaskID | None = None
        self._evaluation: TaskID | None = None
        self._evaluated = 0  # batches of the current or last evaluation
        super().__init__(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(BAR_WIDTH),
            MofNCompleteColumn(table_column=Column(no_wrap=True, justify="right")),
            TextColumn("{task.fields[rate]}", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            # The scalars get the rest of the line; a narrow terminal cuts them.
            TextColumn(
                "{task.fields[scalars]}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=Console(file=cast(IO[str], UnfailingStream(sys.stdout))),
            refresh_per_second=4,
            expand=True,
            transient=True,
        )
        self._scalars: dict[str, float] = {}
        if run.mode == "train":
            self._train = self._add_line("train", run.max_iters)
        self.start()

    def show(self, scalars: Mapping[str, float]) -> None:
        """Update the scalars of training."""
        if self._train is None:
            return
        self._scalars.update(for_lines(scalars))
        shown = {name: value for name, value in self._scalars.items() if name not in SHOWN_LAST}
        seconds = self._scalars.get("time", 0.0)
        self.update(
            self._train,
            scalars=format_scalars(shown),
            rate=_rate(seconds),
        )

    def begin_evaluation(self, mode: str, batches: int | None) -> None:
        """Show the line for an evaluation; `batches` is None if their number is not known."""
        self._evaluated = 0
        previous, self._evaluation = self._evaluation, None
        if previous is not None:
            self.remove_task(previous)
        self._evaluation = self._add_line(mode, batches)

    def advance_evaluation(self) -> None:
        """Count a batch of the evaluation."""
        self._evaluated += 1

    def add_row(self, mode: str, values: Mapping[str, float], iter: int, epoch: int) -> None:
        """Show the results of an evaluation in its line. Training has `show`."""
        if mode == "train" or self._evaluation is None:
            return
        # An evaluation by a function of the user is not counted.
        done = max(self._evaluated, 1)
        self._evaluated = done
        self.update(self._evaluation, completed=done, total=done, scalars=format_scalars(values))

    def add_picture(self, record: Record) -> None:
        """Do nothing: a terminal shows no pictures."""

    def get_renderables(self) -> Iterable[RenderableType]:
        run = self._run
        if self._train is not None:
            label = _label("train", run)
            self.update(self._train, completed=run.iter, total=run.max_iters, description=label)
        if self._evaluation is not None:
            self.update(self._evaluation, completed=self._evaluated)
        yield from super().get_renderables()

    def handler(self) -> logging.Handler:
        """Return a logging handler that prints above the lines."""
        return LineHandler(
            console=self.console,
            show_time=False,
            show_level=False,
            show_path=False,
            markup=False,
            highlighter=None,
        )

    def _add_line(self, mode: str, total: int | None) -> TaskID:
        return self.add_task(_label(mode, self._run), total=total, rate="", scalars="")


class LineHandler(RichHandler):
    """A handler that colors the mode of results, warnings and errors.

    Results are cut at the width of the terminal; `hookline.log` has the whole line.
    """

    def render_message(self, record: logging.LogRecord, message: str) -> ConsoleRenderable:
        text = Text(message)
        if record.levelno >= logging.ERROR:
            text.stylize("red")
        elif record.levelno >= logging.WARNING:
            text.stylize("yellow")
        elif getattr(record, "is_progress", False):
            text.no_wrap = True
            text.overflow = "ellipsis"
            mode = message.partition(" ")[0]
            text.stylize(STYLES.get(mode, ""), 0, len(mode))
        return text


def _rate(seconds: float) -> str:
    """Return the speed: `40 it/s`, or `2.5 s/it` if an iteration takes longer than a second."""
    if not seconds:
        return ""
    return f"{seconds:.1f} s/it" if seconds > 1 else f"{1 / seconds:.0f} it/s"


def _label(mode: str, run: Any) -> str:
    """Return `train epoch 2/10`, or only the mode of an evaluation apart from training."""
    name = f"[{STYLES[mode]}]{mode:<5}[/]"
    if run.mode != "train":
        return name
    epoch = run.epoch + 1
    if run.max_epochs:
        return f"{name} epoch {min(epoch, run.max_epochs)}/{run.max_epochs}"
    return f"{name} epoch {epoch}"
