"""The writer for Neptune: offline records only, because its service ended in March 2026."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.describe import flat
from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require

log = logging.getLogger("hookline")


@WRITERS.register("neptune")
class NeptuneWriter(TrackerWriter):
    """A writer of offline records in the format of Neptune's client: JSON lines and files."""

    def __init__(
        self,
        dir: str | Path = "neptune",
        run_id: str | None = None,
        init_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        neptune = require("neptune", "neptune")
        self._dir = Path(dir)
        log.warning(
            "Neptune's service ended in March 2026: the run is recorded offline, in %s", self._dir
        )
        own = {
            "capture_stdout": False,
            "capture_stderr": False,
            "capture_hardware_metrics": False,
            "git_ref": False,
            "source_files": [],
        }
        before = os.environ.get("NEPTUNE_DATA_DIRECTORY")
        # Neptune reads its folder only from the environment.
        os.environ["NEPTUNE_DATA_DIRECTORY"] = str(self._dir.absolute())
        try:
            self._run = neptune.init_run(
                **{**own, **(init_kwargs or {}), "mode": "offline", "custom_run_id": run_id}
            )
        finally:
            if before is None:
                del os.environ["NEPTUNE_DATA_DIRECTORY"]
            else:
                os.environ["NEPTUNE_DATA_DIRECTORY"] = before

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        for name, value in scalars.items():
            self._run[name].append(value, step=step)

    def write(self, record: Record) -> None:
        from neptune.types import File

        record = portable(record)
        value, step = record.value, record.step
        if record.kind == "image":
            self._run[record.name].append(File.as_image(value / 255.0), step=step)
        elif record.kind == "histogram":
            content = json.dumps({"counts": value.counts.tolist(), "edges": value.edges.tolist()})
            self._run[f"{record.name}/step_{step}"].upload(
                File.from_content(content, extension="json")
            )
        elif record.kind == "text":
            self._run[f"text/{record.name}"].upload(File.from_content(value))
        else:
            self._run[record.name].upload(str(value))

    def write_config(self, config: Mapping[str, Any]) -> None:
        for name, value in flat(config).items():
            self._run[f"config/{name.replace('.', '/')}"] = (
                value if isinstance(value, (bool, int, float, str)) else str(value)
            )

    def missing(self) -> str:
        return (
            f"the service no longer exists, so nothing was uploaded; the records are in {self._dir}"
        )

    def close(self) -> None:
        self._run.stop()
