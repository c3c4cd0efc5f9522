"""The writer for Trackio: a local database, or a Space on Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require


@WRITERS.register("trackio")
class TrackioWriter(TrackerWriter):
    """A writer to a Trackio run; the same name continues it."""

    def __init__(
        self,
        project: str = "hookline",
        name: str | None = None,
        space_id: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._trackio = require("trackio", "trackio")
        self._is_local = space_id is None
        # SystemMonitorHook records the CPU and the GPU.
        own = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
        self._run = self._trackio.init(
            project, name=name, space_id=space_id, config=dict(config or {}), resume="allow", **own
        )

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        self._run.log(dict(scalars), step=step)
        self._store()

    def write(self, record: Record) -> None:
        record = portable(record)
        trackio, value = self._trackio, record.value
        if record.kind == "image":
            self._run.log({record.name: trackio.Image(value)}, step=record.step)
        elif record.kind == "histogram":
            self._run.log(
                {record.name: trackio.Histogram(np_histogram=(value.counts, value.edges))},
                step=record.step,
            )
        elif record.kind == "text":
            self._run.log(
                {f"text/{record.name}": trackio.Markdown(f"```\n{value}\n```")}, step=record.step
            )
        else:
            artifact = trackio.Artifact(
                record.name.replace("/", "-"),
                type="model" if record.name.startswith("checkpoints/") else "file",
            )
            artifact.add_file(str(value))
            self._run.log_artifact(artifact)

    def close(self) -> None:
        self._run.finish()

    def _store(self) -> None:
        """Store logged values now: Trackio's thread would keep them in memory for half a second."""
        store = getattr(self._run, "_flush_queues_inline", None)
        if self._is_local and store is not None:
            with self._run._client_lock:  # noqa: SLF001
                store()
