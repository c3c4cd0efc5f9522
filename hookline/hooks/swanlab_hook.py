"""Log to SwanLab."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.swanlab import SwanLabWriter
from hookline.hooks.bases.tracker import TrackerHook


@HOOKS.register()
@dataclass
class SwanLabHook(TrackerHook):
    """Log to SwanLab. A resumed run continues the same SwanLab run.

    Without an account or a server, the run is recorded on disk, and the log ends with the command
    that uploads it.

    Args:
        project: Name of the SwanLab project.
        run_name: Name of the SwanLab run.
        offline: Record on disk instead of connecting to a server.
        log_model: Upload the last and the best checkpoints.
        interval: Number of iterations between two reports of scalars.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: SwanLabHook, project: digits, run_name: cnn, offline: true}
        ```
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
        return SwanLabWriter(
            self.project, self.run_name, self.run_id[:21], runner.work_dir / "swanlab", self.offline
        )
