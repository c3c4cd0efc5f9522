"""Record runs offline for Neptune."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseRunner, state
from hookline.events.neptune import NeptuneWriter
from hookline.hooks.bases.tracker import TrackerHook


@HOOKS.register("NeptuneLoggerHook")
@HOOKS.register()
@dataclass
class NeptuneHook(TrackerHook):
    """Record the run offline for Neptune, in `neptune` in the work directory.

    Neptune's service ended in March 2026. Its client still writes offline records: JSON lines and
    files.

    Args:
        init_kwargs: Arguments for `neptune.init_run`.
        log_model: Store the last and the best checkpoints.
        interval: Number of iterations between two reports of scalars.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: NeptuneHook, interval: 50}
        ```
    """

    init_kwargs: dict[str, Any] | None = None
    log_model: bool = False
    interval: int = 50
    run_id: str = state("")

    module = "neptune"
    extra = "neptune"

    def open_writer(self, runner: BaseRunner) -> NeptuneWriter:
        return NeptuneWriter(runner.work_dir / "neptune", self.run_id, self.init_kwargs)
