"""Write DVCLive files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hookline.engine import HOOKS, BaseRunner, state
from hookline.errors import parameter_error
from hookline.events.dvclive import DVCLiveWriter
from hookline.hooks.bases.reports import is_fresh_run
from hookline.hooks.bases.tracker import TrackerHook


@HOOKS.register("DvcliveLoggerHook")
@HOOKS.register()
@dataclass
class DVCLiveHook(TrackerHook):
    """Write DVCLive files.

    A new run in the same directory replaces the files of the old one.

    Args:
        dir: Directory of the files. None uses `dvclive` in the work directory.
        save_dvc_exp: Save an experiment in the DVC repository at the end of the run.
        report: Format of the DVCLive report. It is updated whenever scalars are written. None
            writes no report.
        log_model: Track the last and the best checkpoints with DVC. Needs `save_dvc_exp`.
        interval: Number of iterations between two reports of scalars.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: DVCLiveHook, dir: dvclive, report: html}
        ```
    """

    dir: str | None = None
    save_dvc_exp: bool = False
    report: Literal["html", "md"] | None = None
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "dvclive"
    extra = "dvclive"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log_model and not self.save_dvc_exp:
            raise parameter_error(
                self, "log_model", "needs save_dvc_exp: true, because DVC stores the files"
            )

    def open_writer(self, runner: BaseRunner) -> DVCLiveWriter:
        folder = Path(self.dir) if self.dir else runner.work_dir / "dvclive"
        return DVCLiveWriter(folder, not is_fresh_run(runner), self.save_dvc_exp, self.report)
