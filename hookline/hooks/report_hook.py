"""Write the timeline and the report page of a run."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, StopReason
from hookline.events.describe import config_text, run_config
from hookline.events.rows import set_aside
from hookline.files import replace_file
from hookline.hooks.bases.tracker import is_fresh_run
from hookline.profiling.cost_report import COSTS_FILE as COSTS
from hookline.profiling.cost_report import cost_table

COSTS_PERIOD_S = 10.0
LENGTHS = {"max_epochs", "max_iters"}  # details of the reason when a run reaches its end


@HOOKS.register()
@dataclass
class ReportHook(BaseHook):
    """Write a timeline of the run, and the report page `report.html` at the end.

    The timeline is `timeline.jsonl` in the work directory. The hook also serves requests of
    `hookline watch`: a thread checks for them once a second, and the next seam settles them. It has
    no site inside an iteration.

    Example:
        ```yaml
        hooks:
          - {type: ReportHook}
        ```
    """

    # Runs last at the end, when the other hooks have written their files.
    priority = Priority.HIGHEST
    ranks = "main"

    def __post_init__(self) -> None:
        self._timeline: Any = None
        self._listener: Any = None
        self._git: threading.Thread | None = None
        self._started_at: dict[str, float] = {}  # start of a validation or save
        self._reader: Any = None
        self._indexed = 0  # bytes of the log at the last index

    # Not before_run: an evaluation must not touch the files of a running training.
    def before_train(self, runner: BaseRunner) -> None:
        from hookline.report.control import RequestListener
        from hookline.report.environment import environment
        from hookline.report.names import CONFIG, DESCRIPTION, TIMELINE
        from hookline.report.timeline import Timeline

        if is_fresh_run(runner):
            set_aside(runner.work_dir / TIMELINE)
        self._timeline = Timeline(runner.work_dir / TIMELINE)
        lengths = {
            "max_epochs": runner.max_epochs,
            "max_iters": runner.max_iters,
            "seed": runner.seed,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        }
        shaped = [each for each in runner.model.parameters() if not is_lazy(each)]
        parameters = sum(parameter.numel() for parameter in shaped)
        about = {
            "model": f"{type(runner.model).__name__}, {parameters:,} parameters",
            "checkpoints": str(runner.checkpointer.store.directory),
        }
        self._add(
            runner,
            "start",
            resumed=runner.loop.resuming,
            **lengths,
            **about,
            **environment(runner.device),
        )
        if not (runner.work_dir / CONFIG).exists():
            replace_file(runner.work_dir / DESCRIPTION, config_text(run_config(runner)))
        self._costs_at = time.monotonic()
        self._git = threading.Thread(
            target=self._record_git, args=(runner,), name="hookline-git", daemon=True
        )
        self._git.start()
        self._listener = RequestListener(
            runner.work_dir,
            lambda action: runner.loop.requests.call_at_next_seam(
                lambda: self._handle_request(runner, action)
            ),
        )
        self._listener.start()

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if self._timeline is not None and runner.loop.resuming:  # a rollback, not a resume
            self._add(runner, "rollback", from_iter=_came_from(runner))

    def before_val(self, runner: BaseRunner) -> None:
        self._started_at["validate"] = time.perf_counter()

    def after_val(self, runner: BaseRunner) -> None:
        self._add_timed(runner, "validate")

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        if self._timeline is not None:
            self._timeline.sync()
        self._started_at["save"] = time.perf_counter()

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._add_timed(runner, "save")
        self._update_index(runner)

    def _update_index(self, runner: BaseRunner) -> None:
        """Index the logs whenever they have grown by some megabytes: the page stays fast."""
        from hookline.report.collect import RunReader
        from hookline.report.index import MIN_BYTES
        from hookline.report.names import LOG

        log = runner.work_dir / LOG
        size = log.stat().st_size if log.exists() else 0
        if abs(size - self._indexed) >= MIN_BYTES:
            self._reader = self._reader or RunReader(runner.work_dir)
            self._reader.update_index()
            self._indexed = size

    def after_epoch(self, runner: BaseRunner) -> None:
        self._update_index(runner)
        self._add(runner, "epoch")
        if time.monotonic() - self._costs_at >= COSTS_PERIOD_S:
            self._write_costs(runner)

    def after_train(self, runner: BaseRunner) -> None:
        reason = runner.stop_reason
        finished = reason is not None and bool(LENGTHS & set(reason.details))
        self._add(runner, "stop", finished=finished, reason=str(reason))

    def on_exception(self, runner: BaseRunner) -> None:
        if self._timeline is not None and runner.exception is not None:
            from hookline.report.timeline import describe_error

            self._add(runner, "fail", error=describe_error(runner.exception))
            self._write_costs(runner)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._timeline is None:
            return  # There was no training.
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
        except Exception as error:  # The page can be made again; the run must not fail for it.
            runner.logger.warning(
                "%s: no report was made (%s: %s)", self.name, type(error).__name__, error
            )

    def _handle_request(self, runner: BaseRunner, action: str) -> None:
        """Pass a request of the live page on. Called at a seam, which settles the requests."""
        self._add(runner, "requested", action=action)
        if runner.checkpointer.is_open:
            runner.request_save()
        if action == "stop":
            runner.request_stop(StopReason("stopped from the live page", hook=self.name))

    def _record_git(self, runner: BaseRunner) -> None:
        from hookline.report.environment import git_state

        state = git_state(Path.cwd())
        if state is not None:
            self._add(
                runner, "git", **{key: value for key, value in state.items() if key != "time"}
            )

    def _add(self, runner: BaseRunner, what: str, **more: Any) -> None:
        timeline = self._timeline
        if timeline is not None:
            timeline.add(what, iter=runner.iter, epoch=runner.epoch, **more)

    def _add_timed(self, runner: BaseRunner, what: str) -> None:
        began = self._started_at.pop(what, None)
        if began is not None:
            self._add(runner, what, seconds=round(time.perf_counter() - began, 4))

    def _write_costs(self, runner: BaseRunner) -> None:
        """Write the costs so far. At the end of a successful run, the engine writes them."""
        self._costs_at = time.monotonic()
        table = cost_table(runner)
        if table["timed_iterations"]:
            replace_file(runner.work_dir / COSTS, json.dumps(table, indent=1) + "\n")


def _came_from(runner: BaseRunner) -> int:
    """Return the iteration before the rollback, from the `history` of the hook that did it."""
    states = [
        state
        for state in (runner.checkpoint or {}).get("hooks", {}).values()
        if isinstance(state, dict)
    ]
    histories = [state["history"] for state in states if isinstance(state.get("history"), list)]
    steps = [
        history[-1]["iter"]
        for history in histories
        if history and isinstance(history[-1], dict) and "iter" in history[-1]
    ]
    return max(steps, default=runner.iter)
