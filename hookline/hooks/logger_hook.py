"""Log the progress of a run to the console and to JSON lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.data.protocols import count_batches
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import require_at_least
from hookline.events import Writer
from hookline.events.console import ConsoleWriter
from hookline.events.describe import describe_model
from hookline.events.jsonl import JSONLinesWriter
from hookline.events.logs import RunLog
from hookline.events.named_means import check_named_means
from hookline.events.record_files import RecordFiles
from hookline.files import replace_file
from hookline.hooks.bases.reexports import reexport_hooks
from hookline.hooks.bases.reports import (
    combine_ranks,
    evaluation_row,
    is_fresh_run,
    record_losses,
    record_lr_and_memory,
    report_epoch,
)
from hookline.report.ending import align_rows, describe_end, describe_stop

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
        check_named_means(type(self).__name__, self.means or {})
        self._writers: list[Writer] = []  # on rank 0, like the next two
        self._console: ConsoleWriter | None = None
        self._lines: JSONLinesWriter | None = None
        self._log: RunLog | None = None  # on every rank

    def before_run(self, runner: BaseRunner) -> None:
        runner.events.keep(self.interval)
        for name, mean in (self.means or {}).items():
            runner.events.add_mean(name, **mean)
        runner.events.metrics_by_epoch = self.log_metric_by_epoch
        self._started = time.perf_counter()
        if runner.is_main:
            self._console = ConsoleWriter(runner, self.by_epoch)
            self._lines = JSONLinesWriter(runner.work_dir / LOG)
            files = RecordFiles(runner.work_dir, self._lines)
            self._writers = [self._console, self._lines, files]
            runner.events.listeners.extend(self._writers)
        self._log = RunLog(runner.logger, runner.work_dir)

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

    def before_val(self, runner: BaseRunner) -> None:
        self._begin_evaluation(runner, "val", runner.val_loader, runner.evaluation.max_val_batches)

    def after_val_iter(self, runner: BaseRunner) -> None:
        if self._console is not None:
            self._console.advance_evaluation()

    def after_val(self, runner: BaseRunner) -> None:
        # Not in after_val_epoch, where other hooks may still add results.
        self._write_results(runner, "val")

    def before_test(self, runner: BaseRunner) -> None:
        self._begin_evaluation(runner, "test", runner.test_loader, None)

    after_test_iter = after_val_iter

    def after_test(self, runner: BaseRunner) -> None:
        self._write_results(runner, "test")

    def after_train(self, runner: BaseRunner) -> None:
        if not self.ignore_last or not self.has_reported:
            self._report_rest(runner)
        if runner.is_main:
            seconds = time.perf_counter() - self._started
            runner.logger.info("stopped: %s", describe_stop(runner, seconds))

    def after_run(self, runner: BaseRunner) -> None:
        if runner.is_main and runner.mode == "train":
            for line in align_rows(describe_end(runner)):
                runner.logger.info("%s", line)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        # A resumed run does not repeat rows before its checkpoint: they must survive a power cut.
        for writer in self._writers:
            writer.sync()
        if self._log is not None:
            self._log.sync()

    def on_exception(self, runner: BaseRunner) -> None:
        error = runner.exception
        if self._log is not None and isinstance(error, Exception):  # A signal is not a failure.
            self._log.log_failure(error, runner.iter)

    def cleanup(self, runner: BaseRunner) -> None:
        for writer in self._writers:
            runner.events.outbox.remove(writer)
            writer.close()
        self._writers = []
        self._console = None
        self._lines = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _cut(self, runner: BaseRunner) -> None:
        """Remove records of iterations that the run repeats."""
        for writer in self._writers:
            writer.cut_after(runner.iter)
        if self._lines is not None and self.reported_iter is not None:
            self._lines.cut_means_after(self.reported_iter)

    def _begin_evaluation(
        self, runner: BaseRunner, mode: str, loaders: Any, limit: int | None
    ) -> None:
        """Show the progress of an evaluation."""
        if self._console is None:
            return
        batches = None
        if runner.evaluation.test_fn is None:
            batches = count_batches(loaders, limit)
        self._console.begin_evaluation(mode, batches or None)  # `drive` has no loader to count.

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
