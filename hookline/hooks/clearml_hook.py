"""ClearML."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.clearml import ClearMLWriter
from hookline.tracking import TrackerHook, begins_anew


@HOOKS.register()
@dataclass
class ClearMLHook(TrackerHook):
    """Log to a ClearML task every `interval` iterations; a resumed run goes on in the same task.

    Without an account or a server, or with `offline`, the run is recorded in an offline session, and the end says where.
    `log_model` uploads the last and the best checkpoints.
    """

    project: str = "hookline"
    task_name: str | None = None
    offline: bool = False
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")
    task_id: str = state("")  # ClearML chooses it itself

    module = "clearml"
    extra = "clearml"

    def open_writer(self, runner: BaseRunner) -> ClearMLWriter:
        known = None if begins_anew(runner) or self.task_id.startswith("offline") else self.task_id or None
        writer = ClearMLWriter(self.project, self.task_name or runner.work_dir.name, known, self.offline)
        self.task_id = writer.id
        return writer
