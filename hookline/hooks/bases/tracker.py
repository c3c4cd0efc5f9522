"""Base class of hooks that report to a tracker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from hookline.checkpoint import is_reserved_name, safe_name
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.errors import require_at_least
from hookline.events.backlog import Backlog
from hookline.events.delivery import Delivery
from hookline.events.describe import run_config, summary
from hookline.events.outbox import Record
from hookline.events.writer import Writer, check_installed
from hookline.files import read_lines, replace_file
from hookline.hooks.bases.reports import (
    combine_ranks,
    evaluation_row,
    is_fresh_run,
    record_losses,
    record_lr_and_memory,
    report_epoch,
)


class TrackerHook(BaseHook):
    """Base of hooks that report to a tracker, at an interval and after each validation.

    A subclass opens its tracker in `open_writer` and has the state `run_id`, under which a resumed
    run continues. Images, figures, histograms, text and files are delivered at once.

    Args:
        interval: Number of iterations between two reports of scalars.
        log_model: Also upload the last and the best checkpoints.
    """

    module: ClassVar[str]  # the package of the tracker
    extra: ClassVar[str]  # the extra of Hookline that installs it
    slow: ClassVar[bool] = False  # whether the tracker needs its own thread
    ranks = "collective"  # All ranks take part in a report; rank 0 writes it.
    reports = True
    priority = Priority.HIGH  # Late in `after_*`, when other hooks have recorded their values.

    interval: int
    run_id: str
    log_model: bool = False
    _delivery: Delivery | None = None

    def open_writer(self, runner: BaseRunner) -> Writer:
        """Open the tracker."""
        raise NotImplementedError

    def config_of(self, runner: BaseRunner) -> Mapping[str, Any]:
        """Return the configuration that the tracker shows."""
        return run_config(runner)

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")

    def before_run(self, runner: BaseRunner) -> None:
        check_installed(self.module, self.extra)  # before the first batch
        runner.work_dir.mkdir(parents=True, exist_ok=True)
        runner.events.keep(self.interval)
        self._since = runner.iter

    def before_train(self, runner: BaseRunner) -> None:
        self._since = runner.iter
        if runner.is_main:
            self._open(runner, training=True)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.loop.resuming and self._delivery is not None:  # a rollback
            self._delivery.cut_after(runner.iter)
            self._since = runner.iter
        elif runner.mode != "train" and runner.checkpoint is not None:
            # The evaluation of a checkpoint belongs to the run that wrote it.
            saved = runner.checkpoint.get("hooks", {}).get(self.name, {})
            self.run_id = saved.get("run_id", self.run_id)

    def after_train_iter(self, runner: BaseRunner) -> None:
        record_losses(runner)
        if (runner.iter + 1) % self.interval == 0:
            self._report(runner, done=1)

    def before_val(self, runner: BaseRunner) -> None:
        self._open_for_evaluation(runner)

    def before_test(self, runner: BaseRunner) -> None:
        self._open_for_evaluation(runner)

    def after_val(self, runner: BaseRunner) -> None:
        self._write_results(runner, "val")

    def after_test(self, runner: BaseRunner) -> None:
        self._write_results(runner, "test")

    def after_train(self, runner: BaseRunner) -> None:
        if runner.iter > self._since and runner.iter % self.interval:
            self._report(runner, done=0)
        if self.log_model and runner.is_main:
            self._send_checkpoints(runner)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        if self._delivery is not None:
            self._delivery.sync(runner.iter)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._delivery is not None:
            delivery, self._delivery = self._delivery, None
            runner.events.outbox.remove(delivery)
            delivery.failed = runner.exception is not None
            delivery.close()

    def _open(self, runner: BaseRunner, *, training: bool = False) -> Delivery:
        """Return the delivery to the tracker, opened on first use.

        An evaluation without training adds to the tracker's run of the training.
        """
        if self._delivery is not None:
            return self._delivery
        fresh = training and is_fresh_run(runner)
        is_new = self._choose_run_id(runner, training, fresh)
        delivery = self._make_delivery(runner)
        self._delivery = delivery
        runner.events.listeners.append(delivery)
        delivery.start(fresh=fresh, iteration=runner.iter if training else None)
        if training or is_new:  # An evaluation may know less about the run.
            delivery.write_config(self.config_of(runner))
            content = summary(runner.model)
            moment = (runner.iter, runner.epoch + 1, time.time())
            delivery.write(Record("text", "model", content, *moment))
        return delivery

    def _choose_run_id(self, runner: BaseRunner, training: bool, fresh: bool) -> bool:
        """Set the id of the tracker's run; return whether that run is new."""
        # Also in a file: the run may be killed before its first checkpoint.
        note = runner.work_dir / f"{safe_name(self.name)}.run_id"
        if not fresh and not self.run_id and note.exists():
            self.run_id = "".join(read_lines(note)).strip()
        is_new = fresh or not self.run_id
        if is_new:
            self.run_id = uuid.uuid4().hex
        if training:
            replace_file(note, self.run_id)
        return is_new

    def _make_delivery(self, runner: BaseRunner) -> Delivery:
        path = runner.work_dir / f"{safe_name(self.name)}.undelivered.jsonl"
        backlog = Backlog(path, self.run_id)
        return Delivery(self.name, lambda: self.open_writer(runner), backlog, slow=self.slow)

    def _report(self, runner: BaseRunner, done: int) -> None:
        record_lr_and_memory(runner)
        iteration = runner.iter + done
        count = iteration % self.interval or self.interval
        scalars = combine_ranks(runner.world, runner.events.means(count, iteration - count))
        self._since = iteration
        runner.events.outbox.deliver()
        if runner.is_main:
            epoch = report_epoch(runner, done)
            self._open(runner).write_scalars("train", scalars, iter=iteration, epoch=epoch)

    def _open_for_evaluation(self, runner: BaseRunner) -> None:
        if runner.mode != "train" and runner.is_main:
            self._open(runner)

    def _write_results(self, runner: BaseRunner, mode: str) -> None:
        runner.events.outbox.open()
        if runner.is_main:
            row = evaluation_row(runner, mode)
            values = {**row.values, "epoch": row.epoch}
            self._open(runner).write_row(row._replace(values=values))

    def _send_checkpoints(self, runner: BaseRunner) -> None:
        """Upload the last and the best checkpoints."""
        runner.checkpointer.wait()
        store = runner.checkpointer.store
        for entry in store.entries():
            for name in entry.names:
                if is_reserved_name(name):
                    path = store.directory / name
                    moment = (runner.iter, runner.epoch, time.time())
                    record = Record("artifact", f"checkpoints/{name}", path, *moment)
                    self._open(runner).write(record)
