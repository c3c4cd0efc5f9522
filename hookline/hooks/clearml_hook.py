"""Log to ClearML."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.clearml import ClearMLWriter
from hookline.hooks.bases.reports import is_fresh_run
from hookline.hooks.bases.tracker import TrackerHook


@HOOKS.register()
@dataclass
class ClearMLHook(TrackerHook):
    """Log to a ClearML task. A resumed run continues the same task.

    Without an account or a server, the run is recorded in an offline session, and its file is
    logged at the end.

    Args:
        project: Name of the ClearML project.
        task_name: Name of the task. None uses the name of the work directory.
        offline: Record an offline session instead of connecting to a server.
        log_model: Upload the last and the best checkpoints.
        interval: Number of iterations between two reports of scalars.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.
        task_id: ID that ClearML assigned to the task.

    Example:
        ```yaml
        hooks:
          - {type: ClearMLHook, project: digits, task_name: cnn, offline: true}
        ```
    """

    project: str = "hookline"
    task_name: str | None = None
    offline: bool = False
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")
    task_id: str = state("")

    module = "clearml"
    extra = "clearml"

    def open_writer(self, runner: BaseRunner) -> ClearMLWriter:
        task_id = None
        is_online = bool(self.task_id) and not self.task_id.startswith("offline")
        if is_online and not is_fresh_run(runner):
            task_id = self.task_id
        name = self.task_name or runner.work_dir.name
        writer = ClearMLWriter(self.project, name, task_id, self.offline)
        self.task_id = writer.id
        return writer
