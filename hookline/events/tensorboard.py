"""The writer for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.describe import config_text
from hookline.events.outbox import Record, Row
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.files import open_to_read, replace_file

LAST_ITERATION = ".last_iteration"  # a file that a closed log has


@WRITERS.register("tensorboard")
class TensorBoardWriter(TrackerWriter):
    """A writer of TensorBoard's event files in a folder."""

    def __init__(self, log_dir: str | Path = "tensorboard") -> None:
        self.log_dir = Path(log_dir)
        self._used_before = self.log_dir.is_dir() and any(
            self.log_dir.glob("events.out.tfevents.*")
        )
        self._last_iter = 0
        self._open(None)

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        self._last_iter = max(self._last_iter, iter)
        super().write_scalars(mode, scalars, iter=iter, epoch=epoch)

    def write_row(self, row: Row) -> None:
        self._last_iter = max(self._last_iter, row.iter)
        super().write_row(row)

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        for name, value in scalars.items():
            self.board.add_scalar(name, value, step)
        self.board.flush()

    def write(self, record: Record) -> None:
        self._last_iter = max(self._last_iter, record.iter)
        record = portable(record)
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
        """Make TensorBoard drop the points after an iteration.

        It drops them by their steps, and so also points with a larger `global_step`. Nothing is
        dropped if the run ended with that iteration.
        """
        try:
            is_complete = int((self.log_dir / LAST_ITERATION).read_text()) <= iteration
        except (OSError, ValueError):  # The process was killed.
            is_complete = False
        (self.log_dir / LAST_ITERATION).unlink(missing_ok=True)
        if not is_complete:
            self.board.close()
            self._open(iteration + 1)

    def set_aside(self) -> None:
        """Make TensorBoard drop the points of an earlier run in the same folder."""
        if self._used_before:
            self.board.close()
            self._open(0)

    def sync(self) -> None:
        self.board.flush()
        for path in self.log_dir.glob("events.out.tfevents.*"):
            with open_to_read(path) as file:
                os.fsync(file.fileno())

    def close(self) -> None:
        self.board.close()
        replace_file(self.log_dir / LAST_ITERATION, str(self._last_iter))

    def _open(self, purge_step: int | None) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self.board: Any = SummaryWriter(str(self.log_dir), purge_step=purge_step)


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
