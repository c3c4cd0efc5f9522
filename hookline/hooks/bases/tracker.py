"""Base class of hooks that report to a tracker, and the content of a report."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any, ClassVar

from hookline.checkpoint import safe_name
from hookline.dist import World
from hookline.dist.gather import batch_share
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.errors import require_at_least
from hookline.events.backlog import Backlog
from hookline.events.delivery import Delivery
from hookline.events.describe import run_config, summary
from hookline.events.format import MEMORY
from hookline.events.memory import memory_mb
from hookline.events.outbox import Record, Row
from hookline.events.writer import Writer, check_installed
from hookline.files import read_lines, replace_file
from hookline.metrics.mean_loss import STANDARD_OUTPUTS, is_number
from hookline.optim.groups import learning_rates


def record_losses(runner: BaseRunner) -> None:
    """Record the loss and other scalar outputs of the iteration, once for all hooks.

    Values are weighted by this rank's share of the batch, so that their mean over all ranks is the
    mean over samples. The loss is weighted already.
    """
    events = runner.events
    outputs = runner.outputs
    if events.losses_of == runner.iter:
        return
    events.losses_of = runner.iter
    events.put_iteration_scalar("loss", outputs["loss"])
    if len(outputs) > len(STANDARD_OUTPUTS):
        share = batch_share(runner)
        for name, value in outputs.items():
            if name not in STANDARD_OUTPUTS and is_number(value):
                events.put_iteration_scalar(name, value if share == 1.0 else value * share)


def record_lr_and_memory(runner: BaseRunner) -> None:
    """Record the learning rates of the last step and the memory in use."""
    events = runner.events
    rates = events.step_learning_rates
    if rates is None:
        rates = learning_rates(runner.optimizer)
    if len(rates) > 1:
        rates = _distinct_rates(rates, events.latest())
    events.put_iteration_scalars(rates, smoothed=False)
    if events.recorded_at(MEMORY) != runner.iter:
        events.put_iteration_scalar(MEMORY, memory_mb(runner.device), smoothed=False)


def _distinct_rates(rates: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Drop groups (`lr/1`) whose learning rate duplicates another's, unless that series exists.

    An existing series would go stale.
    """
    distinct: dict[str, float] = {}
    seen: set[tuple[str, float]] = set()
    for name, rate in rates.items():
        optimizer = name.partition("/")[0]
        is_group = name != optimizer and optimizer in rates
        is_duplicate = is_group and (optimizer, float(rate)) in seen
        if not is_duplicate or name in known:
            distinct[name] = rate
        seen.add((optimizer, float(rate)))
    return distinct


def combine_ranks(world: World, scalars: Mapping[str, float]) -> Mapping[str, float]:
    """Combine the scalars of all ranks.

    Most are means; times are those of the slowest rank, memory is the largest, and rates per second
    are sums.
    """
    if world.size == 1:
        return scalars
    answers = [json.loads(text) for text in world.gather_text(json.dumps(scalars))]
    combined = {}
    for name in answers[0]:
        values = [each[name] for each in answers if name in each]
        combined[name] = _combination(name)(values)
    return combined


def _combination(name: str) -> Callable[[list[float]], float]:
    if name == "time/iters_per_s":
        return min
    if name.startswith(("time/", "throughput/")) and name.endswith("_per_s"):
        return sum
    if name in ("time", "data_time", "eta", MEMORY) or name.startswith(("time/", "memory/")):
        return max
    return fmean


def evaluation_results(runner: BaseRunner) -> dict[str, float]:
    """Return the metrics of an evaluation and the scalars that hooks recorded in it."""
    return {**runner.events.evaluation_scalars(), **runner.metrics}


def evaluation_row(runner: BaseRunner, mode: str) -> Row:
    """Return the results of an evaluation, with the epoch or the iteration as their step."""
    epoch = report_epoch(runner)
    by_epoch = runner.events.metrics_by_epoch and runner.evaluation.by_epoch
    step = epoch if by_epoch else runner.iter
    return Row(mode, evaluation_results(runner), runner.iter, epoch, step, time.time())


def report_epoch(runner: BaseRunner, done: int = 0) -> int:
    """Return the epoch of a report, counted from 1; between two epochs, the finished one."""
    has_begun = bool(done or runner.inner_iter)
    return runner.epoch + has_begun


def is_fresh_run(runner: BaseRunner) -> bool:
    """Return whether this run starts from the beginning, without `resume`."""
    return runner.iter == 0 and runner.checkpointer.resume is None


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
        # Also in a file: the run may be killed before its first checkpoint.
        note = runner.work_dir / f"{safe_name(self.name)}.run_id"
        if not fresh and not self.run_id and note.exists():
            self.run_id = "".join(read_lines(note)).strip()
        known = bool(self.run_id) and not fresh
        if not known:
            self.run_id = uuid.uuid4().hex
        if training:
            replace_file(note, self.run_id)
        backlog = Backlog(
            runner.work_dir / f"{safe_name(self.name)}.undelivered.jsonl", self.run_id
        )
        self._delivery = delivery = Delivery(
            self.name, lambda: self.open_writer(runner), backlog, slow=self.slow
        )
        runner.events.listeners.append(delivery)
        delivery.start(fresh=fresh, iteration=runner.iter if training else None)
        if training or not known:  # An evaluation may know less about the run.
            delivery.write_config(self.config_of(runner))
            delivery.write(
                Record(
                    "text",
                    "model",
                    summary(runner.model),
                    runner.iter,
                    runner.epoch + 1,
                    time.time(),
                )
            )
        return delivery

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
        runner.checkpointer.wait()
        for entry in runner.checkpointer.store.entries():
            for name in entry.names:
                if name.startswith(("best_", "last.")):
                    self._open(runner).write(
                        Record(
                            "artifact",
                            f"checkpoints/{name}",
                            runner.checkpointer.store.directory / name,
                            runner.iter,
                            runner.epoch,
                            time.time(),
                        )
                    )
