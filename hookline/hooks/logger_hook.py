"""Log the progress of a run to the console and to JSON lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, require_at_least, suggest
from hookline.events import Writer
from hookline.events.console import ConsoleWriter
from hookline.events.describe import describe_model
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.logs import UserLevel, log_file
from hookline.events.record_files import RecordFiles
from hookline.files import replace_file
from hookline.hooks.bases.reexports import reexport_hooks
from hookline.hooks.bases.tracker import (
    combine_ranks,
    evaluation_row,
    is_fresh_run,
    record_losses,
    record_lr_and_memory,
    report_epoch,
)

LOG = "log.jsonl"

__getattr__ = reexport_hooks(__name__, "TensorBoardHook", "WandbHook", "MLflowHook")


@HOOKS.register()
@dataclass
class LoggerHook(BaseHook):
    """Log loss, learning rate, times, memory and metrics to the console and to `log.jsonl`.

    A report comes every `interval` iterations and after each validation. It shows each scalar as
    its mean over the interval.

    Args:
        interval: Number of iterations between two reports.
        by_epoch: Count iterations within the epoch. Otherwise count them within the run.
        log_metric_by_epoch: Use the epoch as the x axis of metrics: on the console, in `log.jsonl`,
            in trackers and in the report. Otherwise, and for validations by iteration, use the
            iteration.
        ignore_last: Do not report the rest of an epoch, or of the run, after the last full
            interval. An epoch or a run shorter than the interval is reported at its end.
        means: More means, by name: `{loss_100: {of: loss, over: 100}}`. `over` is a number of
            values, `epoch` or `global` (the whole run). The name of a scalar replaces its usual
            mean.

    Attributes:
        reported_iter: Iteration up to which training is reported.
        has_reported: Whether there was a report of training.

    Example:
        ```yaml
        hooks:
          - {type: LoggerHook, interval: 20, means: {loss_100: {of: loss, over: 100}}}
        ```
    """

    interval: int = 50
    by_epoch: bool = True
    log_metric_by_epoch: bool = True
    ignore_last: bool = True
    means: dict[str, dict[str, Any]] | None = None
    reported_iter: int | None = state(None)
    has_reported: bool = state(False)

    priority = Priority.NORMAL
    reports = True
    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        for name, mean in (self.means or {}).items():
            self._check_mean(name, mean)
        self._writers: list[Writer] = []
        self._file: Any = None

    def _check_mean(self, name: str, mean: Mapping[str, Any]) -> None:
        keys = ("of", "over")
        path = ("means", name)
        about: dict[str, Any] = {"component": type(self).__name__, "parameter": "means"}
        for key in mean:
            if key not in keys:
                message = f"unknown key {key!r} in means.{name}"
                suggestion = suggest(key, keys)
                raise ConfigError(message, path=(*path, key), suggestion=suggestion, **about)
        if len(mean) < len(keys):
            message = f"means.{name} needs 'of' (a scalar) and 'over'"
            raise ConfigError(message, path=path, value=dict(mean), **about)
        over = mean["over"]
        if over not in ("epoch", "global") and not (isinstance(over, int) and over > 0):
            message = f"'over' in means.{name} must be a number of values, 'epoch' or 'global'"
            raise ConfigError(message, path=(*path, "over"), value=over, **about)

    def before_run(self, runner: BaseRunner) -> None:
        runner.events.keep(self.interval)
        for name, mean in (self.means or {}).items():
            runner.events.add_mean(name, **mean)
        runner.events.metrics_by_epoch = self.log_metric_by_epoch
        self._started = time.perf_counter()
        if runner.is_main:
            lines = JSONLinesWriter(runner.work_dir / LOG)
            files = RecordFiles(runner.work_dir, lines)
            self._writers = [ConsoleWriter(runner, self.by_epoch), lines, files]
            runner.events.listeners.extend(self._writers)
        self._user_level = UserLevel(runner.logger)
        self._file = log_file(runner.work_dir)  # Every rank has a log file.
        runner.logger.addHandler(self._file)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.loop.resuming:  # After a rollback, remove the records of the repeated part.
            self._cut(runner)

    def before_train(self, runner: BaseRunner) -> None:
        if is_fresh_run(runner):
            for writer in self._writers:
                writer.set_aside()
        elif runner.checkpointer.resume is not None:
            self._cut(runner)  # The earlier process may have been killed before its first save.
        if self.reported_iter is None:
            self.reported_iter = runner.iter
        if runner.is_main:
            runner.logger.info("model: %s", describe_model(runner.model))

    def after_train_iter(self, runner: BaseRunner) -> None:
        record_losses(runner)
        position = runner.inner_iter if self.by_epoch else runner.iter
        if (position + 1) % self.interval == 0:
            self._report(runner, done=1)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if not self.by_epoch:
            return
        # An epoch shorter than the interval would otherwise never be reported.
        is_short = runner.inner_iter < self.interval
        if is_short or not self.ignore_last:
            self._report_rest(runner)
        self.reported_iter = runner.iter

    def after_val(self, runner: BaseRunner) -> None:
        # Not in after_val_epoch, where other hooks may still add results.
        self._write_results(runner, "val")

    def after_test(self, runner: BaseRunner) -> None:
        self._write_results(runner, "test")

    def after_train(self, runner: BaseRunner) -> None:
        if not self.ignore_last or not self.has_reported:
            self._report_rest(runner)
        if runner.is_main:
            seconds = time.perf_counter() - self._started
            runner.logger.info(
                "stopped: %s, after %d iterations in %.1f s",
                runner.stop_reason,
                runner.iter,
                seconds,
            )

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        # A resumed run does not repeat rows before its checkpoint: they must survive a power cut.
        for writer in self._writers:
            writer.sync()
        if self._file is not None:
            self._file.sync()

    def on_exception(self, runner: BaseRunner) -> None:
        error = runner.exception
        if self._file is None or not isinstance(error, Exception):  # A signal is not a failure.
            return
        # Only to the file: the console shows the traceback anyway.
        record = runner.logger.makeRecord(
            runner.logger.name,
            logging.ERROR,
            __file__,
            0,
            "failed after %d iterations",
            (runner.iter,),
            (type(error), error, error.__traceback__),
        )
        self._file.handle(record)

    def cleanup(self, runner: BaseRunner) -> None:
        for writer in self._writers:
            runner.events.outbox.remove(writer)
            writer.close()
        self._writers = []
        if self._file is not None:
            runner.logger.removeHandler(self._file)
            self._file.close()
            self._user_level.close()
            self._file = None

    def _cut(self, runner: BaseRunner) -> None:
        """Remove records of iterations that the run repeats."""
        for writer in self._writers:
            writer.cut_after(runner.iter)
            if isinstance(writer, JSONLinesWriter) and self.reported_iter is not None:
                writer.cut_means_after(self.reported_iter)

    def _report_rest(self, runner: BaseRunner) -> None:
        """Report the iterations since the last report, if there are any."""
        if self.reported_iter is not None and runner.iter > self.reported_iter:
            self._report(runner, done=0)

    def _report(self, runner: BaseRunner, done: int) -> None:
        """Write a report; `done` is 1 inside an iteration, which `iter` does not count yet."""
        record_lr_and_memory(runner)
        iteration, epoch = runner.iter + done, report_epoch(runner, done)
        since = runner.iter if self.reported_iter is None else self.reported_iter
        scalars = combine_ranks(runner.world, runner.events.means(iteration - since, since))
        self.has_reported = True
        self.reported_iter = iteration
        runner.events.outbox.deliver()
        for writer in self._writers:
            writer.write_scalars("train", scalars, iter=iteration, epoch=epoch)

    def _write_results(self, runner: BaseRunner, mode: str) -> None:
        runner.events.outbox.open()
        row = evaluation_row(runner, mode)
        for writer in self._writers:
            writer.write_row(row)


@HOOKS.register()
@dataclass
class TextLoggerHook(LoggerHook):
    """Log like LoggerHook, and copy the log files to another directory at the end of the run.

    Args:
        out_dir: Directory for the copies, in a subdirectory named after the work directory. None
            copies nothing.
        out_suffix: Suffix of the files to copy, or several.

    Example:
        ```yaml
        hooks:
          - {type: TextLoggerHook, interval: 50, out_dir: logs}
        ```
    """

    out_dir: str | None = None
    out_suffix: str | Sequence[str] = (".jsonl", ".log")

    def cleanup(self, runner: BaseRunner) -> None:
        super().cleanup(runner)
        if self.out_dir is None or not runner.is_main or not runner.work_dir.is_dir():
            return
        target = Path(self.out_dir) / runner.work_dir.name
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(runner.work_dir.iterdir()):
            if path.is_file() and not path.is_symlink() and self._should_copy(path.name):
                replace_file(target / path.name, path.read_bytes())

    def _should_copy(self, name: str) -> bool:
        suffixes = tuple(self.out_suffix)
        if isinstance(self.out_suffix, str):
            suffixes = (self.out_suffix,)
        is_mmcv_log = name == LOG and ".log.json" in suffixes  # the suffix of this log in MMCV
        return is_mmcv_log or name.endswith(suffixes)
