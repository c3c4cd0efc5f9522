"""The writer for SwanLab."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.secrets import mask_text

log = logging.getLogger("hookline")


@WRITERS.register("swanlab")
class SwanLabWriter(TrackerWriter):
    """A writer to a SwanLab run, or to an offline run without an account or a server.

    The same ID continues a run. SwanLab's mode `local` loses all data without a dashboard, so it is
    not offered.
    """

    def __init__(
        self,
        project: str | None = None,
        name: str | None = None,
        run_id: str | None = None,
        dir: str | Path = "swanlab",
        offline: bool = False,
    ) -> None:
        self._swanlab = require("swanlab", "swanlab")
        wanted: dict[str, Any] = {
            "project": project,
            "name": name,
            "log_dir": str(dir),
            "id": run_id,
            "resume": "allow",
        }
        self._mode = "offline" if offline else "online"
        try:
            self._run = self._swanlab.init(mode=self._mode, **wanted)
        except Exception as error:  # There is no account, network or server.
            if offline:
                raise
            log.warning(
                "SwanLab cannot be reached, the run is recorded offline: %s",
                mask_text(str(error).partition("\n")[0]),
            )
            self._mode = "offline"
            self._run = self._swanlab.init(mode="offline", **wanted)
        self._folder = self._run.dir if hasattr(self._run, "dir") else dir

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        self._run.log(dict(scalars), step=step)

    def write(self, record: Record) -> None:
        record = portable(record)
        if record.kind == "image":
            self._run.log({record.name: self._swanlab.Image(record.value)}, step=record.step)
        elif record.kind == "artifact":
            self._run.save(str(record.value), base_path=str(record.value.parent))
        else:
            text = record.value if record.kind == "text" else _table(record.value)
            self._run.log(
                {f"{record.kind}/{record.name}": self._swanlab.Text(text)}, step=record.step
            )

    def write_config(self, config: Mapping[str, Any]) -> None:
        self._run.config.update(dict(config))

    def missing(self) -> str:
        return (
            f"the run is only on this disk, `swanlab sync {self._folder}` uploads it"
            if self._mode == "offline"
            else ""
        )

    def close(self) -> None:
        self._swanlab.finish(*(["crashed"] if self.failed else []))


def _table(histogram: Any) -> str:
    """Return a histogram as text with a line for each bin, because SwanLab has none."""
    pairs = zip(histogram.edges[:-1], histogram.edges[1:], histogram.counts, strict=True)
    return "\n".join(f"{low:.6g} to {high:.6g}: {int(count)}" for low, high, count in pairs)
