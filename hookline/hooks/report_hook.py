"""What a run leaves for those who look at it: a timeline while it goes, a page when it is over."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.engine.cost_report import FILE as COSTS
from hookline.engine.cost_report import cost_table
from hookline.events.rows import set_aside
from hookline.tracking import begins_anew

COSTS_EVERY = 10.0  # seconds


@HOOKS.register()
@dataclass
class ReportHook(BaseHook):
    """Keep a timeline of the run (`timeline.jsonl`), do what `hookline watch` asks for, and make `report.html` at the end.

    It has no site inside an iteration: a thread looks for requests once a second, and what they ask for happens at the next seam.
    """

    priority = Priority.HIGHEST  # the last at the end, when all files of the others are written
    ranks = "main"

    def __post_init__(self) -> None:
        self._timeline: Any = None
        self._listener: Any = None
        self._git: threading.Thread | None = None
        self._asked: dict[str, float] = {}  # when a validation or a save began

    def before_train(self, runner: BaseRunner) -> None:  # not before_run: another process may be at work in this folder
        from hookline.report.control import Listener
        from hookline.report.environment import environment
        from hookline.report.names import TIMELINE
        from hookline.report.timeline import Timeline

        if begins_anew(runner):
            set_aside(runner.work_dir / TIMELINE)
        self._timeline = Timeline(runner.work_dir / TIMELINE)
        lengths = {"max_epochs": runner.max_epochs, "max_iters": runner.max_iters, "seed": runner.seed}
        parameters = sum(parameter.numel() for parameter in runner.model.parameters())
        about = {"model": f"{type(runner.model).__name__}, {parameters:,} parameters", "checkpoints": str(runner.store.directory)}
        self._add(runner, "start", resumed=runner.resuming, **lengths, **about, **environment(runner.device))
        self._costs_at = time.monotonic()
        self._git = threading.Thread(target=self._tell_git, args=(runner,), name="hookline-git", daemon=True)
        self._git.start()
        self._listener = Listener(runner.work_dir, lambda action: runner.seam.call_next(lambda: self._obey(runner, action)))
        self._listener.start()

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if self._timeline is not None and runner.resuming:  # on its way: the run has gone back
            self._add(runner, "rollback", from_iter=_came_from(runner))

    def before_val(self, runner: BaseRunner) -> None:
        self._asked["validate"] = time.perf_counter()

    def after_val(self, runner: BaseRunner) -> None:
        self._add_timed(runner, "validate")

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        self._asked["save"] = time.perf_counter()

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._add_timed(runner, "save")

    def after_epoch(self, runner: BaseRunner) -> None:
        self._add(runner, "epoch")
        if time.monotonic() - self._costs_at >= COSTS_EVERY:
            self._write_costs(runner)

    def after_train(self, runner: BaseRunner) -> None:
        self._add(runner, "stop", reason=runner.stop_reason)

    def on_exception(self, runner: BaseRunner) -> None:
        if self._timeline is not None and runner.exception is not None:
            from hookline.report.timeline import one_line

            self._add(runner, "fail", error=one_line(runner.exception))
            self._write_costs(runner)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._timeline is None:
            return  # nothing was trained
        in_a_hurry = isinstance(runner.exception, (SystemExit, KeyboardInterrupt))
        if self._listener is not None:
            self._listener.stop()
        if self._git is not None:
            self._git.join(timeout=0 if in_a_hurry else 1)
        self._timeline.close()
        self._timeline = self._listener = self._git = None
        if not in_a_hurry:
            self._make_page(runner)

    def _make_page(self, runner: BaseRunner) -> None:
        from hookline.report.names import REPORT
        from hookline.report.page import write_report

        try:
            write_report([runner.work_dir], runner.work_dir / REPORT)
        except Exception as error:  # a page that can be made again at any time is not worth the result of a run
            runner.logger.warning("%s: no report was made (%s: %s)", self.name, type(error).__name__, error)

    def _obey(self, runner: BaseRunner, action: str) -> None:
        """Called at a seam, so that it is settled there."""
        self._add(runner, "asked", action=action)
        if runner.saver is not None:
            runner.request_save()
        if action == "stop":
            runner.request_stop("asked to stop from the live page")

    def _tell_git(self, runner: BaseRunner) -> None:
        from hookline.report.environment import git_state

        state = git_state(Path.cwd())
        if state is not None:
            self._add(runner, "git", **{key: value for key, value in state.items() if key != "time"})

    def _add(self, runner: BaseRunner, what: str, **more: Any) -> None:
        timeline = self._timeline
        if timeline is not None:
            timeline.add(what, iter=runner.iter, epoch=runner.epoch, **more)

    def _add_timed(self, runner: BaseRunner, what: str) -> None:
        began = self._asked.pop(what, None)
        if began is not None:
            self._add(runner, what, seconds=round(time.perf_counter() - began, 4))

    def _write_costs(self, runner: BaseRunner) -> None:
        """So far: at the end of a run that ends well the engine writes them."""
        self._costs_at = time.monotonic()
        table = cost_table(runner)
        if table["timed_iterations"]:
            (runner.work_dir / COSTS).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _came_from(runner: BaseRunner) -> int:
    """The iteration from which a run has gone back: whichever hook did it has written that down in its `history`."""
    states = [state for state in (runner.checkpoint or {}).get("hooks", {}).values() if isinstance(state, dict)]
    histories = [state["history"] for state in states if isinstance(state.get("history"), list)]
    steps = [history[-1]["iter"] for history in histories if history and isinstance(history[-1], dict) and "iter" in history[-1]]
    return max(steps, default=runner.iter)
