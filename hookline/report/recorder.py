"""The record of a running training for its report: timeline, environment, costs, index and page."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hookline.events.describe import config_text, describe_model, run_config
from hookline.events.rows import set_aside
from hookline.files import replace_file
from hookline.profiling.cost_report import cost_table
from hookline.report.collect import RunReader
from hookline.report.control import RequestListener
from hookline.report.environment import environment, git_state
from hookline.report.index import MIN_BYTES
from hookline.report.names import CONFIG, COSTS, DESCRIPTION, LOG, REPORT, TIMELINE
from hookline.report.page import write_report
from hookline.report.timeline import Timeline, describe_error

COSTS_PERIOD_S = 10.0


class RunRecorder:
    """The writer of the files that a report is made of, and the listener for requests.

    Args:
        runner: The runner.
        is_fresh: Whether a new run begins in the work directory.
        on_request: Called with the action of a request of the live page, from another thread.
    """

    def __init__(self, runner: Any, is_fresh: bool, on_request: Callable[[str], object]) -> None:
        self._runner = runner
        self._folder: Path = runner.work_dir
        if is_fresh:
            set_aside(self._folder / TIMELINE)
        self._timeline = Timeline(self._folder / TIMELINE)
        self._started_at: dict[str, float] = {}  # start of a validation or save
        self._reader: RunReader | None = None
        self._indexed = 0  # bytes of the log at the last index
        self._costs_at = time.monotonic()
        self._git = threading.Thread(target=self._record_git, name="hookline-git", daemon=True)
        self._listener = RequestListener(self._folder, on_request)

    def start(self) -> None:
        """Record the beginning and the config, and start the threads."""
        runner = self._runner
        epoch = self._epoch()
        if not runner.inner_iter and not runner.loop.is_finished():
            epoch += 1  # A run begins in epoch 1.
        self._timeline.add(
            "start",
            iter=runner.iter,
            epoch=epoch,
            resumed=runner.loop.resuming,
            max_epochs=runner.max_epochs,
            max_iters=runner.max_iters,
            seed=runner.seed,
            deterministic=torch.are_deterministic_algorithms_enabled(),
            model=describe_model(runner.model),
            checkpoints=str(runner.checkpointer.store.directory),
            **environment(runner.device),
        )
        if not (self._folder / CONFIG).exists():
            replace_file(self._folder / DESCRIPTION, config_text(run_config(runner)))
        self._git.start()
        self._listener.start()

    def add(self, what: str, **more: Any) -> None:
        """Add a row to the timeline. Epochs count as in the log: from 1, with the current one."""
        self._timeline.add(what, iter=self._runner.iter, epoch=self._epoch(), **more)

    def add_rollback(self) -> None:
        self.add("rollback", from_iter=_came_from(self._runner))

    def add_failure(self, error: BaseException) -> None:
        self.add("fail", error=describe_error(error))
        self._write_costs()

    def begin(self, what: str) -> None:
        """Begin something that takes time: a validation or a save."""
        self._started_at[what] = time.perf_counter()

    def end(self, what: str) -> None:
        """Add a row with the time since `begin`."""
        began = self._started_at.pop(what, None)
        if began is not None:
            self.add(what, seconds=round(time.perf_counter() - began, 4))

    def sync(self) -> None:
        """Return when the timeline is on the disk."""
        self._timeline.sync()

    def update_index(self) -> None:
        """Index the logs whenever they have grown by some megabytes: the page stays fast."""
        log = self._folder / LOG
        size = log.stat().st_size if log.exists() else 0
        if abs(size - self._indexed) >= MIN_BYTES:
            self._reader = self._reader or RunReader(self._folder)
            self._reader.update_index()
            self._indexed = size

    def update_costs(self) -> None:
        """Write the costs of hooks so far, from time to time."""
        if time.monotonic() - self._costs_at >= COSTS_PERIOD_S:
            self._write_costs()

    def close(self, in_a_hurry: bool) -> None:
        """Stop the threads and close the timeline."""
        self._listener.stop()
        self._git.join(timeout=0 if in_a_hurry else 1)
        self._timeline.close()

    def make_page(self) -> None:
        """Write the report page."""
        write_report([self._folder], self._folder / REPORT)

    def _epoch(self) -> int:
        """Return the number of the current epoch; between two, that of the last one."""
        return int(self._runner.epoch + bool(self._runner.inner_iter))

    def _record_git(self) -> None:
        state = git_state(Path.cwd())
        if state is not None:
            self.add("git", **{key: value for key, value in state.items() if key != "time"})

    def _write_costs(self) -> None:
        """Write the costs so far. At the end of a successful run, the engine writes them."""
        self._costs_at = time.monotonic()
        table = cost_table(self._runner)
        if table["timed_iterations"]:
            replace_file(self._folder / COSTS, json.dumps(table, indent=1) + "\n")


def _came_from(runner: Any) -> int:
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
    return int(max(steps, default=runner.iter))
