"""Log to Trackio."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.trackio import TrackioWriter
from hookline.hooks.bases.tracker import TrackerHook


@HOOKS.register()
@dataclass
class TrackioHook(TrackerHook):
    """Log to Trackio. A resumed run continues the same Trackio run.

    Args:
        project: Name of the Trackio project.
        run_name: Name of the Trackio run. None uses the name of the work directory.
        space_id: Hugging Face Space to log to. None uses the local database.
        log_model: Store the last and the best checkpoints.
        interval: Number of iterations between two reports of scalars.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: TrackioHook, project: digits, run_name: cnn}
        ```
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
        # Trackio identifies runs by their names.
        name = f"{self.run_name or runner.work_dir.name}-{self.run_id[:8]}"
        return TrackioWriter(self.project, name, self.space_id, self.config_of(runner))
