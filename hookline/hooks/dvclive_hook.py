"""DVCLive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.dvclive import DVCLiveWriter
from hookline.tracking import TrackerHook, begins_anew


@HOOKS.register("DvcliveLoggerHook")
@HOOKS.register()
@dataclass
class DVCLiveHook(TrackerHook):
    """Write DVCLive's files to `dir` (`dvclive` in the work directory if none is given) every `interval` iterations.

    With `save_dvc_exp` the end of the run is an experiment of the DVC repository. `report` is `html` or `md`, made anew at
    each report. `log_model` hands the last and the best checkpoints to DVC. A new run in the same folder replaces the old one.
    """

    dir: str | None = None
    save_dvc_exp: bool = False
    report: Literal["html", "md"] | None = None
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "dvclive"
    extra = "dvclive"

    def open_writer(self, runner: BaseRunner) -> DVCLiveWriter:
        folder = Path(self.dir) if self.dir else runner.work_dir / "dvclive"
        return DVCLiveWriter(folder, not begins_anew(runner), self.save_dvc_exp, self.report)
