"""Send recorded scalars to writers at a fixed period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hookline.checkpoint import safe_name
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError, require_at_least
from hookline.events import WRITERS, Writer
from hookline.events.backlog import Backlog
from hookline.events.delivery import Delivery
from hookline.hooks.bases.reports import (
    evaluation_row,
    is_fresh_run,
    record_losses,
    record_lr_and_memory,
    report_epoch,
)


@HOOKS.register("PeriodicWriter")
@HOOKS.register()
@dataclass
class PeriodicWriterHook(BaseHook):
    """Send recorded scalars to writers, such as a CSV file, at a fixed period.

    Writers also receive the scalars after the last iteration and are closed at the end of the run.
    A failing writer does not stop the run.

    Args:
        writers: Writers, their names (`csv`) or configs (`{type: csv, path: curves.csv}`). Relative
            paths start in the work directory.
        period: Number of iterations between two writes.

    Example:
        ```yaml
        hooks:
          - {type: PeriodicWriterHook, writers: [{type: csv, path: curves.csv}], period: 20}
        ```
    """

    writers: Sequence[Any] = ("csv",)
    period: int = 20

    priority = Priority.HIGH
    reports = True
    ranks = "main"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "period")
        for writer in self.writers:
            _class_of(writer)  # Raises for an unknown name.
        self._open: list[Delivery] = []

    def before_run(self, runner: BaseRunner) -> None:
        runner.work_dir.mkdir(parents=True, exist_ok=True)
        runner.events.keep(self.period)
        self._written = runner.iter

    def before_train(self, runner: BaseRunner) -> None:
        self._written = runner.iter
        self._start(runner, fresh=is_fresh_run(runner), iteration=runner.iter)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        self._written = runner.iter
        for writer in self._open:
            writer.cut_after(runner.iter)

    def after_train_iter(self, runner: BaseRunner) -> None:
        record_losses(runner)
        if self.every_n_iters(runner, self.period):
            self._write(runner, done=1)

    def before_val(self, runner: BaseRunner) -> None:
        self._start(runner)

    def before_test(self, runner: BaseRunner) -> None:
        self._start(runner)

    def after_val(self, runner: BaseRunner) -> None:
        self._write_results(runner, "val")

    def after_test(self, runner: BaseRunner) -> None:
        self._write_results(runner, "test")

    def after_train(self, runner: BaseRunner) -> None:
        if runner.iter > self._written and runner.iter % self.period:
            self._write(runner, done=0)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        for writer in self._open:
            writer.sync(runner.iter)

    def cleanup(self, runner: BaseRunner) -> None:
        opened, self._open = self._open, []
        for writer in opened:
            runner.events.outbox.remove(writer)
            writer.failed = runner.exception is not None
            writer.close()

    def _start(
        self, runner: BaseRunner, *, fresh: bool = False, iteration: int | None = None
    ) -> list[Delivery]:
        """Open the writers if needed: an evaluation without training appends to their files."""
        if not self._open:
            for index, config in enumerate(self.writers):
                kind, label = _class_of(config), safe_name(f"{self.name}.{index}")
                backlog = Backlog(runner.work_dir / f"{label}.undelivered.jsonl", label)
                make = partial(WRITERS.build_for, config, runner, runner.work_dir)
                delivery = Delivery(f"{self.name} ({kind.__name__})", make, backlog, slow=kind.slow)
                delivery.start(fresh=fresh, iteration=iteration)
                runner.events.listeners.append(delivery)
                self._open.append(delivery)
        return self._open

    def _write(self, runner: BaseRunner, done: int) -> None:
        record_lr_and_memory(runner)
        iteration, epoch = runner.iter + done, report_epoch(runner, done)
        count = iteration % self.period or self.period
        scalars = runner.events.means(count, iteration - count)
        self._written = iteration
        writers = self._start(runner)
        runner.events.outbox.deliver()
        for writer in writers:
            writer.write_scalars("train", scalars, iter=iteration, epoch=epoch)

    def _write_results(self, runner: BaseRunner, mode: str) -> None:
        runner.events.outbox.open()
        row = evaluation_row(runner, mode)
        for writer in self._open:
            writer.write_row(row)


def _class_of(config: Mapping[str, Any] | Writer | str) -> type[Writer]:
    if isinstance(config, Writer):
        return type(config)
    if not isinstance(config, (str, Mapping)):
        message = "a writer must be a name, a config or a Writer"
        raise ConfigError(
            message, component="PeriodicWriterHook", parameter="writers", value=config
        )
    return WRITERS.get(config if isinstance(config, str) else config.get("type", ""))
