"""What a run says while it goes: lines or a bar for people, JSON lines for programs."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import suggest
from hookline.events import Writer
from hookline.events.console import ConsoleWriter
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.logs import log_file
from hookline.tracking import begins_anew, epoch_of_report, over_processes, put_losses, put_state, results_of

LOG = "log.jsonl"


@HOOKS.register()
@dataclass
class LoggerHook(BaseHook):
    """Report loss, learning rate, times, memory and metrics every `interval` iterations and after each validation.

    With `by_epoch` iterations are counted within the epoch. `ignore_last` leaves out the rest of an epoch after its last
    whole interval. With `log_metric_by_epoch` validation results are filed under their epoch, else under the iteration.
    A scalar is shown as its mean over the interval; `means` adds others, or replaces it: `{loss_100: {of: loss, over: 100}}`,
    over so many values, the `epoch`, or all of the run (`global`).
    """

    interval: int = 50
    by_epoch: bool = True
    log_metric_by_epoch: bool = True
    ignore_last: bool = True
    means: dict[str, dict[str, Any]] | None = None

    priority = Priority.NORMAL
    ranks = "collective"

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"{type(self).__name__}: interval must be at least 1, got {self.interval}")
        for name, mean in (self.means or {}).items():
            _check_mean(f"{type(self).__name__}: means.{name}", mean)
        self._writers: list[Writer] = []
        self._file: Any = None

    def before_run(self, runner: BaseRunner) -> None:
        runner.events.keep(self.interval)
        for name, mean in (self.means or {}).items():
            runner.events.add_mean(name, **mean)
        self._started, self._reported, self._reported_iter = time.perf_counter(), runner.events.recorded, runner.iter
        if runner.is_main:
            self._writers = [ConsoleWriter(runner, self.by_epoch), JSONLinesWriter(runner.work_dir / LOG)]
        self._file = log_file(runner.work_dir)  # each process has its own; the rest is for the first
        runner.logger.addHandler(self._file)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.resuming:  # a run that goes back on its way leaves no double points either
            self._cut(runner)

    def before_train(self, runner: BaseRunner) -> None:
        if begins_anew(runner):
            for writer in self._writers:
                writer.set_aside()
        elif runner.resume is not None:
            self._cut(runner)  # also where nothing was saved before the run was killed

    def after_train_iter(self, runner: BaseRunner) -> None:
        put_losses(runner)
        position = runner.inner_iter if self.by_epoch else runner.iter
        if (position + 1) % self.interval == 0:
            self._report(runner, self.interval)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        rest = runner.inner_iter % self.interval
        whole_epoch = rest == runner.inner_iter  # an epoch shorter than the interval would otherwise never be reported
        if self.by_epoch and rest and (whole_epoch or not self.ignore_last):
            self._report(runner, rest, done=0)

    def after_val(self, runner: BaseRunner) -> None:  # not at the epoch's end, where other hooks may still add to the results
        self._write("val", runner)

    def after_test(self, runner: BaseRunner) -> None:
        self._write("test", runner)

    def after_train(self, runner: BaseRunner) -> None:
        # Which hooks record differs from process to process, and all of them take part in a report.
        if runner.events.recorded > self._reported if runner.world.size == 1 else runner.iter > self._reported_iter:
            self._report(runner, self.interval, done=0)
        if runner.is_main:
            seconds = time.perf_counter() - self._started
            runner.logger.info("stopped: %s, after %d iterations in %.1f s", runner.stop_reason, runner.iter, seconds)

    def on_exception(self, runner: BaseRunner) -> None:
        error = runner.exception
        if self._file is not None and isinstance(error, Exception):  # a signal is no failure
            told = "failed after %d iterations", (runner.iter,), (type(error), error, error.__traceback__)
            record = runner.logger.makeRecord(runner.logger.name, logging.ERROR, __file__, 0, *told)
            self._file.handle(record)  # to the file alone: where the run was started, the error shows anyway

    def cleanup(self, runner: BaseRunner) -> None:
        for writer in self._writers:
            writer.close()
        self._writers = []
        if self._file is not None:
            runner.logger.removeHandler(self._file)
            self._file.close()

    def _cut(self, runner: BaseRunner) -> None:
        for writer in self._writers:
            writer.cut_after(runner.iter)

    def _report(self, runner: BaseRunner, count: int, done: int = 1) -> None:
        if not self._writers and runner.world.size == 1:
            return
        put_state(runner)
        scalars = over_processes(runner.world, runner.events.means(count))
        self._reported, self._reported_iter = runner.events.recorded, runner.iter + done
        for writer in self._writers:
            writer.write_scalars("train", scalars, iter=runner.iter + done, epoch=epoch_of_report(runner, done))

    def _write(self, mode: str, runner: BaseRunner) -> None:
        step = {"step": epoch_of_report(runner) if self.log_metric_by_epoch else runner.iter}
        for writer in self._writers:
            scalars = results_of(runner) | (step if isinstance(writer, JSONLinesWriter) else {})
            writer.write_scalars(mode, scalars, iter=runner.iter, epoch=epoch_of_report(runner))


@HOOKS.register()
@dataclass
class TextLoggerHook(LoggerHook):
    """LoggerHook that, when the run is over, also copies its log files to `out_dir`: those that end in one of `out_suffix`."""

    out_dir: str | None = None
    out_suffix: str | Sequence[str] = (".jsonl", ".log")

    def cleanup(self, runner: BaseRunner) -> None:
        super().cleanup(runner)
        if self.out_dir is None or not runner.is_main or not runner.work_dir.is_dir():
            return
        suffixes = (self.out_suffix,) if isinstance(self.out_suffix, str) else tuple(self.out_suffix)
        (target := Path(self.out_dir) / runner.work_dir.name).mkdir(parents=True, exist_ok=True)
        for path in sorted(runner.work_dir.iterdir()):
            if path.is_file() and (path.name.endswith(suffixes) or (path.name == LOG and ".log.json" in suffixes)):
                shutil.copy2(path, target / path.name)


def _check_mean(where: str, mean: Mapping[str, Any]) -> None:
    for key in mean:
        if key not in ("of", "over"):
            raise ValueError(f"{where}: unknown key {key!r}{suggest(key, ('of', 'over'))}")
    if len(mean) < 2:
        raise ValueError(f"{where}: needs 'of' (a scalar) and 'over' (a number of values, 'epoch' or 'global'), got {dict(mean)!r}")
    if mean["over"] not in ("epoch", "global") and not (isinstance(mean["over"], int) and mean["over"] > 0):
        raise ValueError(f"{where}: 'over' must be a number of values, 'epoch' or 'global', got {mean['over']!r}")
