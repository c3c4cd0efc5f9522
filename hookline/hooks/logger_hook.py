"""What a run says while it goes: lines or a bar for people, JSON lines for programs."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.events.console import ConsoleWriter
from hookline.events.jsonl import JSONLinesWriter
from hookline.optim.groups import learning_rates


@HOOKS.register()
@dataclass
class LoggerHook(BaseHook):
    """Report loss, learning rate, times and metrics every `interval` iterations and after each validation.

    With `by_epoch` iterations are counted within the epoch. `ignore_last` leaves out the rest of an epoch after its last
    whole interval. With `log_metric_by_epoch` validation results are filed under their epoch, else under the iteration.
    """

    interval: int = 50
    by_epoch: bool = True
    log_metric_by_epoch: bool = True
    ignore_last: bool = True

    priority = Priority.NORMAL
    ranks = "main"

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"LoggerHook: interval must be at least 1, got {self.interval}")

    def before_run(self, runner: BaseRunner) -> None:
        runner.work_dir.mkdir(parents=True, exist_ok=True)
        self._console = ConsoleWriter(runner, self.by_epoch)
        self._jsonl = JSONLinesWriter(runner.work_dir / "log.jsonl")
        self._file = logging.FileHandler(runner.work_dir / "hookline.log", encoding="utf-8")
        self._file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        runner.logger.addHandler(self._file)
        self._started = time.perf_counter()
        self._reported = runner.events.recorded

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.resuming:
            self._jsonl.cut_after(runner.iter)  # a run that goes back on its way leaves no double points either

    def before_train(self, runner: BaseRunner) -> None:
        if runner.resume is not None:
            self._jsonl.cut_after(runner.iter)  # also where nothing was saved before the run was killed
        elif runner.iter == 0:
            self._jsonl.set_aside()

    def after_train_iter(self, runner: BaseRunner) -> None:
        runner.events.put_scalar("loss", runner.outputs["loss"])
        position = runner.inner_iter if self.by_epoch else runner.iter
        if (position + 1) % self.interval == 0:
            self._report(runner, self.interval)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        rest = runner.inner_iter % self.interval
        whole_epoch = rest == runner.inner_iter  # an epoch shorter than the interval would otherwise never be reported
        if self.by_epoch and rest and (whole_epoch or not self.ignore_last):
            self._report(runner, rest, done=0)

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self._write("val", dict(runner.metrics), runner)

    def after_test_epoch(self, runner: BaseRunner) -> None:
        self._write("test", dict(runner.metrics), runner)

    def after_train(self, runner: BaseRunner) -> None:
        if runner.events.recorded > self._reported:
            self._report(runner, self.interval, done=0)
        seconds = time.perf_counter() - self._started
        runner.logger.info("stopped: %s, after %d iterations in %.1f s", runner.stop_reason, runner.iter, seconds)

    def cleanup(self, runner: BaseRunner) -> None:
        if hasattr(self, "_file"):
            self._console.close()
            self._jsonl.close()
            runner.logger.removeHandler(self._file)
            self._file.close()

    def _report(self, runner: BaseRunner, count: int, done: int = 1) -> None:
        rates = runner.used_rates if runner.used_rates is not None else learning_rates(runner.optimizer)
        runner.events.put_scalars(rates, smoothing_hint=False)
        scalars = runner.events.means(count)
        self._reported = runner.events.recorded
        for writer in (self._console, self._jsonl):
            writer.write_scalars("train", scalars, iter=runner.iter + done, epoch=runner.epoch + 1)

    def _write(self, mode: str, scalars: dict[str, float], runner: BaseRunner) -> None:
        step = runner.epoch + 1 if self.log_metric_by_epoch else runner.iter
        self._console.write_scalars(mode, scalars, iter=runner.iter, epoch=runner.epoch + 1)
        self._jsonl.write_scalars(mode, {**scalars, "step": step}, iter=runner.iter, epoch=runner.epoch + 1)
