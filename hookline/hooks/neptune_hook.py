"""Neptune, as far as it still goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.neptune import NeptuneWriter
from hookline.tracking import TrackerHook


@HOOKS.register("NeptuneLoggerHook")
@HOOKS.register()
@dataclass
class NeptuneHook(TrackerHook):
    """Record the run in `neptune` in the work directory, offline: Neptune's service ended in March 2026.

    Its client still writes its records (JSON lines, and files beside them). `init_kwargs` go to `neptune.init_run`.
    """

    init_kwargs: dict[str, Any] | None = None
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "neptune"
    extra = "neptune"

    def open_writer(self, runner: BaseRunner) -> NeptuneWriter:
        return NeptuneWriter(runner.work_dir / "neptune", self.run_id, self.init_kwargs)
