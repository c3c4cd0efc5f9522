"""The progress bar on a terminal. Its own thread reads the counters, at no cost to iterations."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, cast

from rich.console import Console, RenderableType
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from hookline.events.format import SHOWN_LAST, for_lines, format_scalars
from hookline.streams import UnfailingStream

if TYPE_CHECKING:
    from hookline.events.console import Progress as RunProgress
    from hookline.events.outbox import Record

BAR_WIDTH = 16  # columns


class ProgressBar(Progress):
    """A bar with the epoch, the rate, the remaining time and the latest scalars."""

    def __init__(self, run: RunProgress) -> None:
        self._run = run  # Set first: rich renders during its constructor.
        super().__init__(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(BAR_WIDTH),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
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
        self._task = self.add_task("epoch 1", total=run.max_iters, rate="", scalars="")
        self.start()

    def show(self, scalars: Mapping[str, float]) -> None:
        """Update the scalars behind the bar."""
        self._scalars.update(for_lines(scalars))
        shown = {name: value for name, value in self._scalars.items() if name not in SHOWN_LAST}
        seconds = self._scalars.get("time", 0.0)
        self.update(
            self._task,
            scalars=format_scalars(shown),
            rate=f"{1 / seconds:.0f} it/s" if seconds else "",
        )

    def add_row(self, mode: str, values: Mapping[str, float], iter: int, epoch: int) -> None:
        """Do nothing: results are log lines above the bar."""

    def add_picture(self, record: Record) -> None:
        """Do nothing: a terminal shows no pictures."""

    def get_renderables(self) -> Iterable[RenderableType]:
        run = self._run
        if self.tasks:
            now = run.epoch + 1
            last = run.max_epochs
            described = f"epoch {min(now, last)}/{last}" if last else f"epoch {now}"
            self.update(self._task, completed=run.iter, total=run.max_iters, description=described)
        yield from super().get_renderables()

    def handler(self) -> logging.Handler:
        """Return a logging handler that prints above the bar."""
        return RichHandler(
            console=self.console,
            show_time=False,
            show_level=False,
            show_path=False,
            markup=False,
            highlighter=None,
        )
