"""SwanLab."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.swanlab import SwanLabWriter
from hookline.tracking import TrackerHook


@HOOKS.register()
@dataclass
class SwanLabHook(TrackerHook):
    """Log to SwanLab every `interval` iterations; a resumed run goes on in the same SwanLab run.

    Without an account or a server, or with `offline`, the run is recorded on disk, and the end says how to upload it.
    `log_model` uploads the last and the best checkpoints.
    """

    project: str | None = None
    run_name: str | None = None
    offline: bool = False
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "swanlab"
    extra = "swanlab"

    def open_writer(self, runner: BaseRunner) -> SwanLabWriter:
        return SwanLabWriter(self.project, self.run_name, self.run_id[:21], runner.work_dir / "swanlab", self.offline)
