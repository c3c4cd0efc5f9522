"""Any writers, at a period of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hookline.checkpoint import safe_name
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.events import WRITERS, Writer
from hookline.events.backlog import Backlog
from hookline.events.delivery import Delivery
from hookline.tracking import begins_anew, epoch_of_report, put_losses, put_state, results_of


@HOOKS.register("PeriodicWriter")
@HOOKS.register()
@dataclass
class PeriodicWriterHook(BaseHook):
    """Hand what is recorded to `writers`, a CSV file if none are named, every `period` iterations and after the last one.

    Writers are objects, names (`csv`) or configs (`{type: csv, path: curves.csv}`); relative paths lie in the work directory.
    They are closed when the run is over, and one that fails does not stop the run.
    """

    writers: Sequence[Any] = ("csv",)
    period: int = 20

    priority = Priority.HIGH
    ranks = "main"

    def __post_init__(self) -> None:
        if self.period < 1:
            raise ValueError(f"PeriodicWriterHook: period must be at least 1, got {self.period}")
        for writer in self.writers:
            _class_of(writer)  # an unknown name is told now
        self._open: list[Delivery] = []

    def before_run(self, runner: BaseRunner) -> None:
        runner.work_dir.mkdir(parents=True, exist_ok=True)
        runner.events.keep(self.period)
        self._written = runner.events.recorded

    def before_train(self, runner: BaseRunner) -> None:
        self._start(runner, fresh=begins_anew(runner), iteration=runner.iter)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        for writer in self._open:
            writer.cut_after(runner.iter)

    def after_train_iter(self, runner: BaseRunner) -> None:
        put_losses(runner)
        if self.every_n_iters(runner, self.period):
            self._write(runner, done=1)

    def after_val(self, runner: BaseRunner) -> None:
        for writer in self._start(runner):
            writer.write_scalars("val", results_of(runner), iter=runner.iter, epoch=epoch_of_report(runner))

    def after_test(self, runner: BaseRunner) -> None:
        for writer in self._start(runner):
            writer.write_scalars("test", results_of(runner), iter=runner.iter, epoch=epoch_of_report(runner))

    def after_train(self, runner: BaseRunner) -> None:
        if runner.events.recorded > self._written:
            self._write(runner, done=0)

    def cleanup(self, runner: BaseRunner) -> None:
        opened, self._open = self._open, []
        for writer in opened:
            runner.events.listeners.remove(writer)
            writer.failed = runner.exception is not None
            writer.close()

    def _start(self, runner: BaseRunner, *, fresh: bool = False, iteration: int | None = None) -> list[Delivery]:
        """The writers, opened if they are not: an evaluation without training adds to what training wrote."""
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
        put_state(runner)
        scalars = runner.events.means(self.period)
        self._written = runner.events.recorded
        for writer in self._start(runner):
            writer.write_scalars("train", scalars, iter=runner.iter + done, epoch=epoch_of_report(runner, done))


def _class_of(config: Mapping[str, Any] | Writer | str) -> type[Writer]:
    if isinstance(config, Writer):
        return type(config)
    if not isinstance(config, (str, Mapping)):
        raise TypeError(f"PeriodicWriterHook: a writer is a name, a config or a Writer, got {config!r}")
    return WRITERS.get(config if isinstance(config, str) else config.get("type", ""))
