"""Trace every iteration of a run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error
from hookline.profiling.run_trace import RunTrace


@HOOKS.register()
@dataclass
class RunTraceHook(BaseHook):
    """Write a Chrome trace of every iteration: phases, hooks, validations and saves.

    The file grows by about 1.5 KB per iteration. A resumed run writes `run_trace.1.json` and so on.

    Args:
        path: File of the trace, relative to the work directory.

    Example:
        ```yaml
        hooks:
          - {type: RunTraceHook, path: run_trace.json}
        ```
    """

    path: str = "run_trace.json"

    priority = Priority.HIGHEST  # starts before and ends after the other hooks
    ranks = "main"

    def __post_init__(self) -> None:
        if not self.path or Path(self.path).is_absolute() or ".." in Path(self.path).parts:
            raise parameter_error(self, "path", "must name a file below the work directory")
        self._trace: RunTrace | None = None

    def before_run(self, runner: BaseRunner) -> None:
        self._trace = RunTrace(_free(runner.work_dir / self.path))
        runner.sites.costs.add_observer(self._trace)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._trace is not None:
            runner.sites.costs.remove_observer(self._trace)
            self._trace.close()
            self._trace = None


def _free(path: Path) -> Path:
    numbered = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(1))
    return path if not path.exists() else next(other for other in numbered if not other.exists())
