"""The writer for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.describe import config_text
from hookline.events.event_files import PATTERN, cut_files, mark
from hookline.events.outbox import Record, Row
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.files import open_to_read


@WRITERS.register("tensorboard")
class TensorBoardWriter(TrackerWriter):
    """A writer of TensorBoard's event files in a folder."""

    def __init__(self, log_dir: str | Path = "tensorboard") -> None:
        self.log_dir = Path(log_dir)
        self._used_before = self.log_dir.is_dir() and any(self.log_dir.glob(PATTERN))
        self._purge_step: int | None = None
        self._board: Any = None
        self._marked = -1
        require("tensorboard", "tensorboard")

    @property
    def board(self) -> Any:
        """TensorBoard's writer, opened on first use."""
        if self._board is None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self.log_dir), purge_step=self._purge_step)
            self._marked = -1
        return self._board

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        self._mark(iter)
        super().write_scalars(mode, scalars, iter=iter, epoch=epoch)

    def write_row(self, row: Row) -> None:
        self._mark(row.iter)
        super().write_row(row)

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        for name, value in scalars.items():
            self.board.add_scalar(name, value, step)
        self.board.flush()

    def write(self, record: Record) -> None:
        record = portable(record)
        self._mark(record.iter)
        name, value, step = record.name, record.value, record.step
        if record.kind == "image":
            self.board.add_image(name, value, step, walltime=record.time, dataformats="HWC")
        elif record.kind == "histogram":
            self.board.add_histogram_raw(
                name, **_moments(value), global_step=step, walltime=record.time
            )
        elif record.kind == "text":
            self.board.add_text(name, _block(value), step, walltime=record.time)
        else:
            # TensorBoard cannot hold files, only their paths.
            self.board.add_text(f"files/{name}", str(value), step, walltime=record.time)
        self.board.flush()

    def write_config(self, config: Mapping[str, Any]) -> None:
        self.board.add_text("config", _block(config_text(config)), 0)
        self.board.flush()

    def write_graph(self, model: Any, inputs: Any) -> None:
        """Write the graph of the model, traced with inputs."""
        self.board.add_graph(model, inputs)
        self.board.flush()

    def cut_after(self, iteration: int) -> None:
        """Drop the points that were recorded after an iteration, whatever their steps.

        A TensorBoard that is open drops points by their steps, so points that were recorded before
        and have a later step are written again.
        """
        self.close()
        has_later_points, later_steps = cut_files(self.log_dir, iteration)
        if has_later_points:
            self._purge_step = iteration + 1
            for recorded_in, event in later_steps:
                self._mark(recorded_in)
                self.board.file_writer.add_event(event, walltime=event.wall_time)
            self.board.flush()

    def set_aside(self) -> None:
        """Make TensorBoard drop the points of an earlier run in the same folder."""
        if self._used_before:
            self.close()
            self._purge_step = 0

    def sync(self) -> None:
        if self._board is not None:
            self._board.flush()
        for path in self.log_dir.glob(PATTERN):
            with open_to_read(path) as file:
                os.fsync(file.fileno())

    def close(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None
            self._purge_step = None

    def _mark(self, iteration: int) -> None:
        """Mark the following points as recorded in an iteration."""
        board = self.board  # A new one has no marks.
        if iteration != self._marked:
            self._marked = iteration
            board.file_writer.add_event(mark(iteration))


def _moments(histogram: Any) -> dict[str, Any]:
    """Return the arguments of TensorBoard's raw histogram; its sums are as exact as its bins."""
    counts, edges = histogram
    centres = (edges[:-1] + edges[1:]) / 2
    return {
        "min": float(edges[0]),
        "max": float(edges[-1]),
        "num": int(counts.sum()),
        "sum": float((counts * centres).sum()),
        "sum_squares": float((counts * centres**2).sum()),
        "bucket_limits": edges[1:].tolist(),
        "bucket_counts": counts.tolist(),
    }


def _block(text: str) -> str:
    """Return text as a Markdown code block."""
    return "".join(f"    {line}\n" for line in text.splitlines())
