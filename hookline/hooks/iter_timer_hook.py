"""Record the times of iterations and their phases, rates and the ETA."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from hookline.batches import count_samples
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import require_at_least
from hookline.profiling.iteration_times import IterationTimes

MAX_PENDING = 1024  # iterations whose times are not computed yet


@HOOKS.register()
@dataclass
class IterTimerHook(BaseHook):
    """Record the time of iterations, rates and the ETA, and log the training speed at the end.

    Each iteration has a `time` and a `data_time` (waiting for its batch). A report has the `eta`,
    which includes the remaining validations and saves. Every `interval` iterations, the hook
    records `time/samples_per_s` and `time/iters_per_s`. Sampled iterations also give the seconds of
    each phase: `time/data`, `time/forward`, `time/backward`, `time/optimizer` and `time/hooks`.

    An iteration only reads the clock. Times are computed for many iterations at once, when the
    events are read.

    Args:
        interval: Number of iterations between two records of rates and phases.
        log_eta: Record `eta`.
        warmup_iter: Number of first iterations to exclude from rates, ETA and training speed.
        ignore_warmup_time: Exclude these iterations from `time` and the total training time, too.

    Example:
        ```yaml
        hooks:
          - {type: IterTimerHook, interval: 50, warmup_iter: 3}
        ```
    """

    interval: int = 50
    log_eta: bool = True
    warmup_iter: int = 3
    ignore_warmup_time: bool = False
    clock: Callable[[], float] = field(default=time.perf_counter, init=False, repr=False)

    priority = Priority.LOW

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        require_at_least(self, 0, "warmup_iter")

    def before_train(self, runner: BaseRunner) -> None:
        self._started = self.clock()
        self._times = IterationTimes(runner.iter, self.warmup_iter, self._now(runner))
        self._pending = self._times.pending  # the same list: most iterations only add to it
        self._epoch = runner.epoch
        self._due = runner.iter  # the iteration at which times are computed at the latest
        self._batch_size = 0  # the largest seen; counting in every iteration would be slow
        samples, phases = runner.sites.costs.phase_totals()
        self._phase_samples = samples
        self._phase_seconds = dict(phases)
        runner.events.sources.append(self._compute_times)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        if self._compute_times not in runner.events.sources:
            return  # This is an evaluation without training.
        self._compute_times()
        self._times.pause(runner.iter, self._now(runner))
        self._epoch = runner.epoch
        self._due = runner.iter  # The first iteration shows the batch size.

    after_val = after_save_checkpoint = before_train_epoch  # other ends of a pause

    def after_train_iter(self, runner: BaseRunner) -> None:
        # Exclude the time in which a profile was written.
        now = self.clock() - runner.sites.costs.excluded_seconds
        self._pending.append((runner.iter, now, runner.loop.data_time))
        if runner.iter >= self._due:
            self._compute_times()
            # The last batch of an epoch may be smaller.
            samples = count_samples(runner.outputs, runner.batch)
            self._batch_size = max(self._batch_size, samples)
            since_report = (runner.iter + 1) % self.interval
            if since_report == 0:
                self._report(runner)
            self._due = runner.iter + min(self.interval - since_report, MAX_PENDING)

    def after_train(self, runner: BaseRunner) -> None:
        self._compute_times()
        if self._times.iters:
            self._log_speed(runner)

    def cleanup(self, runner: BaseRunner) -> None:
        if self._compute_times in runner.events.sources:
            runner.events.sources.remove(self._compute_times)

    def _now(self, runner: BaseRunner) -> float:
        """Return the clock without the time in which profiles were written."""
        return self.clock() - runner.sites.costs.excluded_seconds

    def _compute_times(self) -> None:
        """Compute and record the times of pending iterations."""
        if not self._pending:
            return
        runner = self.runner
        finished = self._times.take()
        first = 0
        if self.ignore_warmup_time and finished.warmup:
            first = finished.warmup
            self._started = finished.ends[first - 1]
        wall_time_of_zero = time.time() - self._now(runner)
        moments = []
        for iteration, end in zip(finished.iterations[first:], finished.ends[first:], strict=True):
            moments.append((iteration, self._epoch, wall_time_of_zero + end))
        runner.events.put_history("time", finished.seconds[first:], moments)
        runner.events.put_history("data_time", finished.waits[first:], moments)
        if self.log_eta and self._times.iters and runner.max_iters is not None:
            done = finished.iterations[-1] + 1
            eta = self._times.seconds_left(done, runner.max_iters)
            runner.events.put_iteration_scalar("eta", eta, smoothed=False)

    def _report(self, runner: BaseRunner) -> None:
        """Record rates and phases of the iterations since the last report."""
        iters, seconds = self._times.start_interval()
        if not iters:
            return
        rate = iters / seconds
        scalars = {
            "time/iters_per_s": rate,
            "time/samples_per_s": rate * self._batch_size,
            **self._mean_phase_times(runner),
        }
        runner.events.put_iteration_scalars(scalars, smoothed=False)

    def _mean_phase_times(self, runner: BaseRunner) -> dict[str, float]:
        """Return the mean seconds per phase of the iterations sampled since the last report."""
        samples, phases = runner.sites.costs.phase_totals()
        count = samples - self._phase_samples
        before = self._phase_seconds
        self._phase_samples = samples
        self._phase_seconds = dict(phases)
        if count <= 0:
            return {}
        means = {}
        for name, seconds in phases.items():
            means[f"time/{name}"] = (seconds - before.get(name, 0.0)) / count
        return means

    def _log_speed(self, runner: BaseRunner) -> None:
        total = self.clock() - self._started
        warmup = 0.0 if self.ignore_warmup_time else self._times.warmup_seconds
        seconds = self._times.seconds
        samples, phases = runner.sites.costs.phase_totals()
        timed = sum(phases.values())
        if samples and timed:
            # A share: the timed iterations may be those in which hooks do most.
            seconds *= 1 - phases["hooks"] / timed
        runner.logger.info(
            "Overall training speed: %d iterations in %s (%.6f s / it)",
            self._times.iters,
            _hours_minutes_seconds(seconds),
            seconds / self._times.iters,
            extra={"is_detail": True},
        )
        runner.logger.info(
            "Total training time: %s (%s on hooks, validations and saves)",
            _hours_minutes_seconds(total),
            _hours_minutes_seconds(max(0.0, total - seconds - warmup)),
            extra={"is_detail": True},
        )


def _hours_minutes_seconds(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
