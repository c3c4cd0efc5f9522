"""Trackio."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.trackio import TrackioWriter
from hookline.tracking import TrackerHook


@HOOKS.register()
@dataclass
class TrackioHook(TrackerHook):
    """Log to Trackio every `interval` iterations: to its local database, or to the Hugging Face Space `space_id`.

    A resumed run goes on in the same Trackio run. `log_model` stores the last and the best checkpoints.
    """

    project: str = "hookline"
    run_name: str | None = None
    space_id: str | None = None
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "trackio"
    extra = "trackio"

    def open_writer(self, runner: BaseRunner) -> TrackioWriter:
        name = f"{self.run_name or runner.work_dir.name}-{self.run_id[:8]}"  # Trackio tells runs apart by their names
        return TrackioWriter(self.project, name, self.space_id, self.config_of(runner))
