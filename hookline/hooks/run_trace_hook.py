"""What a run did when, all of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.profiling.run_trace import RunTrace


@HOOKS.register()
@dataclass
class RunTraceHook(BaseHook):
    """Time every iteration instead of a few, and write phases, hooks, validations and saves to a chrome trace.

    `path` lies in the work directory; a resumed run writes `run_trace.1.json` and so on. About 1.5 KB an iteration.
    """

    path: str = "run_trace.json"

    priority = Priority.HIGHEST  # so that it is there before the others and after them
    ranks = "main"

    def __post_init__(self) -> None:
        if not self.path or Path(self.path).is_absolute() or ".." in Path(self.path).parts:
            raise ValueError(f"RunTraceHook: path must name a file below the work directory, got {self.path!r}")
        self._trace: RunTrace | None = None

    def before_run(self, runner: BaseRunner) -> None:
        self._trace = RunTrace(_free(runner.work_dir / self.path))
        runner.costs.watch(self._trace)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._trace is not None:
            runner.costs.unwatch(self._trace)
            self._trace.close()
            self._trace = None


def _free(path: Path) -> Path:
    numbered = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(1))
    return path if not path.exists() else next(other for other in numbered if not other.exists())
