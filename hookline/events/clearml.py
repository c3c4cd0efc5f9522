"""The writer for ClearML."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.secrets import mask_text

log = logging.getLogger("hookline")


@WRITERS.register("clearml")
class ClearMLWriter(TrackerWriter):
    """A writer to a ClearML task, or to an offline session without an account or a server.

    Args:
        project: The project of the task.
        name: The name of the task.
        task_id: The task to continue.
        offline: Whether to record offline even if there is a server.
    """

    def __init__(
        self,
        project: str = "hookline",
        name: str = "run",
        task_id: str | None = None,
        offline: bool = False,
    ) -> None:
        self._clearml = require("clearml", "clearml")
        self._offline = offline
        try:
            self._task = self._init(project, name, task_id)
        except Exception as error:  # There is no account, network or server.
            if offline:
                raise
            log.warning(
                "ClearML cannot be reached, the run is recorded offline: %s",
                mask_text(str(error).partition("\n")[0]),
            )
            self._offline = True
            self._task = self._init(project, name, None)
        # Offline mode lasts for the whole process.
        self._offline = bool(self._clearml.Task.is_offline())
        self.id = str(self._task.id)
        self._folder = self._task.get_offline_mode_folder() if self._offline else None
        self._log = self._task.get_logger()

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        for name, value in scalars.items():
            series, _, title = name.partition("/")
            self._log.report_scalar(title, series, value=value, iteration=step)

    def write(self, record: Record) -> None:
        record = portable(record)
        title, value = record.name, record.value
        if record.kind == "image":
            self._log.report_image(title, "image", iteration=record.step, image=value)
        elif record.kind == "histogram":
            labels = [f"{edge:.4g}" for edge in value.edges[:-1]]
            self._log.report_histogram(
                title, "counts", iteration=record.step, values=value.counts, xlabels=labels
            )
        elif record.kind == "text":
            self._log.report_text(f"{title}\n{value}", print_console=False)
        else:
            self._task.upload_artifact(title.replace("/", "-"), artifact_object=str(value))

    def write_config(self, config: Mapping[str, Any]) -> None:
        self._task.connect_configuration(dict(config), name="config")

    def missing(self) -> str:
        if not self._offline:
            return ""
        path = f"{self._folder}.zip"
        return f"the run is only on disk, in {path}; Task.import_offline_session uploads it"

    def close(self) -> None:
        if self.failed and not self._offline:
            self._task.mark_failed()
        self._task.close()

    def _init(self, project: str, name: str, task_id: str | None) -> Any:
        task = self._clearml.Task
        if self._offline:
            task.set_offline(True)
        # The hook reports the config and the records itself.
        own = dict.fromkeys(("arg_parser", "frameworks", "streams"), False)
        return task.init(
            project_name=project,
            task_name=name,
            reuse_last_task_id=False,
            continue_last_task=task_id or False,
            auto_resource_monitoring=False,
            **{f"auto_connect_{what}": value for what, value in own.items()},
        )
