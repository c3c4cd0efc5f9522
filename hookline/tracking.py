"""What all hooks that report have in common: what a report holds, and the sites at which a tracker gets it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any, ClassVar

import torch

from hookline.checkpoint import safe_name
from hookline.dist import World
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.engine.shares import batch_share
from hookline.events.backlog import Backlog
from hookline.events.delivery import Delivery
from hookline.events.describe import run_config, summary
from hookline.events.format import MEMORY
from hookline.events.memory import memory_mb
from hookline.events.storage import Record
from hookline.events.writer import Writer, check_installed
from hookline.optim.groups import learning_rates

OF_EVERY_STEP = 3  # loss, predictions and targets; a model with a step of its own may return more


def put_losses(runner: BaseRunner) -> None:
    """Record the iteration's loss, and other single numbers that the model's own step returned, unless a hook has already.

    Like the loss the others count by this process's part of the batch, so that the mean over all is that over the samples.
    """
    events, outputs = runner.events, runner.outputs
    if events.losses_of == runner.iter:
        return
    events.losses_of = runner.iter
    events.put_scalar("loss", outputs["loss"])
    if len(outputs) > OF_EVERY_STEP:
        share = batch_share(runner)
        for name, value in outputs.items():
            if name not in ("loss", "predictions", "targets") and _is_number(value):
                events.put_scalar(name, value if share == 1.0 else value * share)


def put_state(runner: BaseRunner) -> None:
    """Record the learning rates of the step that was just taken, and the memory in use; nothing that would call for a report of its own."""
    events, before = runner.events, runner.events.recorded
    rates = runner.used_rates if runner.used_rates is not None else learning_rates(runner.optimizer)
    events.put_scalars(rates if len(rates) < 2 else _telling(rates, events.latest()), smoothing_hint=False)
    if events.recorded_at(MEMORY) != runner.iter:
        events.put_scalar(MEMORY, memory_mb(runner.device), smoothing_hint=False)
    events.recorded = before


def _telling(rates: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Learning rates without those of groups (`lr/1`) that repeat another one's; one that is known goes on, lest its last value stay."""
    told: dict[str, float] = {}
    seen: set[tuple[str, float]] = set()
    for name, rate in rates.items():
        optimizer = name.partition("/")[0]
        repeated = name != optimizer in rates and (optimizer, float(rate)) in seen
        if not repeated or name in known:
            told[name] = rate
        seen.add((optimizer, float(rate)))
    return told


def over_processes(world: World, scalars: Mapping[str, float]) -> Mapping[str, float]:
    """What all processes have recorded: means, but the time of the slowest, the most memory, and work a second of all together."""
    if world.size == 1:
        return scalars
    told = [json.loads(text) for text in world.gather_text(json.dumps(scalars))]
    return {name: _together(name)([each[name] for each in told if name in each]) for name in told[0]}


def _together(name: str) -> Callable[[list[float]], float]:
    if name == "time/iters_per_s":
        return min
    if name.startswith(("time/", "throughput/")) and name.endswith("_per_s"):
        return sum
    return max if name in ("time", "data_time", "eta", MEMORY) or name.startswith(("time/", "memory/")) else fmean


def results_of(runner: BaseRunner) -> dict[str, float]:
    """What an evaluation gave: its metrics, and what hooks recorded in it."""
    return {**runner.events.evaluated(), **runner.metrics}


def epoch_of_report(runner: BaseRunner, done: int = 0) -> int:
    """The epoch, counted from 1, that a report belongs to; between two epochs, and after the last, it is the one that is over."""
    return runner.epoch + (1 if done or runner.inner_iter else 0)


def begins_anew(runner: BaseRunner) -> bool:
    """Whether this is a run of its own, and not one that goes on."""
    return runner.iter == 0 and runner.resume is None


class TrackerHook(BaseHook):
    """Base of the hooks that hand what a run records to a tracker: scalars every `interval` iterations and after each validation.

    The hook says how to open its tracker (`open_writer`), and has the state `run_id`, under which a resumed run goes on.
    Images, figures, histograms, text and files that anyone puts into the events are delivered as they come.
    """

    module: ClassVar[str]  # the package that must be there
    extra: ClassVar[str]  # of ours, that installs it
    slow: ClassVar[bool] = False  # whether the tracker is opened and fed in a thread of its own
    ranks = "collective"  # all processes take part in a report, and the main one writes it
    priority = Priority.HIGH  # so that it is left late: what others record at the same site is there

    interval: int
    run_id: str
    log_model: bool = False
    _delivery: Delivery | None = None

    def open_writer(self, runner: BaseRunner) -> Writer:
        raise NotImplementedError

    def config_of(self, runner: BaseRunner) -> Mapping[str, Any]:
        """What the tracker is told of the run's configuration."""
        return run_config(runner)

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"{type(self).__name__}: interval must be at least 1, got {self.interval}")

    def before_run(self, runner: BaseRunner) -> None:
        check_installed(self.module, self.extra)  # told now, not when the first batch is through
        runner.work_dir.mkdir(parents=True, exist_ok=True)
        runner.events.keep(self.interval)
        self._reported, self._since = runner.events.recorded, runner.iter

    def before_train(self, runner: BaseRunner) -> None:
        self._reported, self._since = runner.events.recorded, runner.iter
        if runner.is_main:
            self._open(runner, training=True)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        if runner.resuming and self._delivery is not None:  # the run goes back on its way
            self._delivery.cut_after(runner.iter)
            self._since = runner.iter
        elif runner.mode != "train" and runner.checkpoint is not None:  # what is measured of a checkpoint belongs to its run
            self.run_id = runner.checkpoint.get("hooks", {}).get(self.name, {}).get("run_id", self.run_id)

    def after_train_iter(self, runner: BaseRunner) -> None:
        put_losses(runner)
        if (runner.iter + 1) % self.interval == 0:
            self._report(runner, done=1)

    def after_val(self, runner: BaseRunner) -> None:
        self._write(runner, "val", results_of(runner), runner.iter, epoch_of_report(runner))

    def after_test(self, runner: BaseRunner) -> None:
        self._write(runner, "test", results_of(runner), runner.iter, epoch_of_report(runner))

    def after_train(self, runner: BaseRunner) -> None:
        if runner.events.recorded > self._reported if runner.world.size == 1 else runner.iter > self._since:
            self._report(runner, done=0)
        if self.log_model and runner.is_main:
            self._send_checkpoints(runner)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._delivery is not None:
            delivery, self._delivery = self._delivery, None
            runner.events.listeners.remove(delivery)
            delivery.failed = runner.exception is not None
            delivery.close()

    def _open(self, runner: BaseRunner, *, training: bool = False) -> Delivery:
        """The way to the tracker, opened if it is not: an evaluation without training adds to what training reported."""
        if self._delivery is not None:
            return self._delivery
        fresh = training and begins_anew(runner)
        note = runner.work_dir / f"{safe_name(self.name)}.run_id"  # for a run that is killed before its first checkpoint
        if not fresh and not self.run_id and note.exists():
            self.run_id = note.read_text(encoding="utf-8").strip()
        known = bool(self.run_id) and not fresh
        if not known:
            self.run_id = uuid.uuid4().hex
        if training:
            note.write_text(self.run_id, encoding="utf-8")
        backlog = Backlog(runner.work_dir / f"{safe_name(self.name)}.undelivered.jsonl", self.run_id)
        self._delivery = delivery = Delivery(self.name, lambda: self.open_writer(runner), backlog, slow=self.slow)
        runner.events.listeners.append(delivery)
        delivery.start(fresh=fresh, iteration=runner.iter if training else None)
        if training or not known:  # one that evaluates may be made of less than the run is
            delivery.write_config(self.config_of(runner))
            delivery.write(Record("text", "model", summary(runner.model), runner.iter, runner.epoch, time.time()))
        return delivery

    def _report(self, runner: BaseRunner, done: int) -> None:
        put_state(runner)
        scalars = over_processes(runner.world, runner.events.means(self.interval, since=self._since))
        self._reported, self._since = runner.events.recorded, runner.iter + done
        self._write(runner, "train", scalars, runner.iter + done, epoch_of_report(runner, done))

    def _write(self, runner: BaseRunner, mode: str, scalars: Mapping[str, float], iteration: int, epoch: int) -> None:
        if runner.is_main:
            self._open(runner).write_scalars(mode, scalars, iter=iteration, epoch=epoch)

    def _send_checkpoints(self, runner: BaseRunner) -> None:
        runner.wait_for_saves()
        for entry in runner.store.entries():
            for name in entry.names:
                if name.startswith(("best_", "last.")):
                    self._open(runner).write(
                        Record("artifact", f"checkpoints/{name}", runner.store.directory / name, runner.iter, runner.epoch, time.time())
                    )


def _is_number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.ndim == 0
    return isinstance(value, (int, float)) and not isinstance(value, bool)
