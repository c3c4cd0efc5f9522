"""Record the times of iterations and their phases, rates and the ETA."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from hookline.batches import count_samples
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import require_at_least

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
        self._first = runner.iter
        self._warm = runner.iter + self.warmup_iter
        self._outside = 0.0  # seconds between iterations: validations, saves, ends of epochs
        self._outside_until = runner.iter  # the iteration up to which `_outside` is complete
        self._seconds = 0.0  # of the iterations after the warm-up
        self._iters = 0  # the number of those iterations
        self._warmup = 0.0  # seconds of the warm-up
        self._reported_seconds = 0.0  # `_seconds` at the last report
        self._reported_iters = 0
        self._pace = 0.0  # seconds per iteration, for the ETA
        self._batch_size = 0  # the largest seen; counting in every iteration would be slow
        samples, phases = runner.sites.costs.phase_totals()
        self._phase_samples = samples
        self._phase_seconds = dict(phases)
        self._pending: list[tuple[int, float, float]] = []  # iteration, its end, its data time
        self._due = runner.iter  # the iteration at which times are computed at the latest
        self._begin(runner)
        runner.events.sources.append(self._compute_times)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._skip_pause(runner)

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

    def after_val(self, runner: BaseRunner) -> None:
        self._skip_pause(runner)

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._skip_pause(runner)

    def after_train(self, runner: BaseRunner) -> None:
        self._compute_times()
        if not self._iters:
            return
        total = self.clock() - self._started
        seconds = self._seconds
        samples, phases = runner.sites.costs.phase_totals()
        timed = sum(phases.values())
        if samples and timed:
            # A share: the timed iterations may be those in which hooks do most.
            seconds *= 1 - phases["hooks"] / timed
        runner.logger.info(
            "Overall training speed: %d iterations in %s (%.6f s / it)",
            self._iters,
            _hours_minutes_seconds(seconds),
            seconds / self._iters,
        )
        runner.logger.info(
            "Total training time: %s (%s on hooks, validations and saves)",
            _hours_minutes_seconds(total),
            _hours_minutes_seconds(max(0.0, total - seconds - self._warmup)),
        )

    def cleanup(self, runner: BaseRunner) -> None:
        if self._compute_times in runner.events.sources:
            runner.events.sources.remove(self._compute_times)

    def _skip_pause(self, runner: BaseRunner) -> None:
        """Count the time since the last iteration as time between iterations."""
        if self._compute_times not in runner.events.sources:
            return  # This is an evaluation without training.
        self._compute_times()
        now = self.clock() - runner.sites.costs.excluded_seconds
        self._outside += now - self._iteration_began
        self._outside_until = runner.iter
        self._begin(runner)

    def _begin(self, runner: BaseRunner) -> None:
        """Restart the clock for the next iteration."""
        self._iteration_began = self.clock() - runner.sites.costs.excluded_seconds
        self._epoch = runner.epoch
        self._due = runner.iter  # The first iteration shows the batch size.

    def _compute_times(self) -> None:
        """Compute and record the times of pending iterations."""
        if not self._pending:
            return
        pending = self._pending
        self._pending = []
        iterations, ends, waits = zip(*pending, strict=True)
        begins = (self._iteration_began, *ends[:-1])
        seconds = [end - begin for begin, end in zip(begins, ends, strict=True)]
        self._iteration_began = ends[-1]
        recorded = warm = bisect_left(iterations, self._warm)
        self._seconds += sum(seconds[warm:])
        self._iters += len(ends) - warm
        if not self.ignore_warmup_time:
            self._warmup += sum(seconds[:warm])
            recorded = 0
        elif warm:
            self._started = ends[warm - 1]
        wall_time_of_zero = time.time() - self.clock() + self.runner.sites.costs.excluded_seconds
        moments = [
            (iteration, self._epoch, wall_time_of_zero + end)
            for iteration, end, _ in pending[recorded:]
        ]
        self.runner.events.put_history("time", seconds[recorded:], moments)
        self.runner.events.put_history("data_time", waits[recorded:], moments)
        self._record_eta(iterations[-1] + 1)

    def _report(self, runner: BaseRunner) -> None:
        seconds = self._seconds - self._reported_seconds
        iters = self._iters - self._reported_iters
        if not iters:
            return
        rate = iters / seconds
        scalars = {
            "time/iters_per_s": rate,
            "time/samples_per_s": rate * self._batch_size,
            **self._mean_phase_times(runner),
        }
        runner.events.put_iteration_scalars(scalars, smoothed=False)
        self._pace = seconds / iters
        self._reported_seconds = self._seconds
        self._reported_iters = self._iters

    def _record_eta(self, done: int) -> None:
        """Record the time left after an iteration, at the pace since the last report."""
        runner = self.runner
        iters = self._iters - self._reported_iters
        if iters:
            self._pace = (self._seconds - self._reported_seconds) / iters
        if self.log_eta and self._iters and runner.max_iters is not None:
            eta = self._eta(done, runner.max_iters, self._pace)
            runner.events.put_iteration_scalar("eta", eta, smoothed=False)

    def _eta(self, done: int, end: int, seconds: float) -> float:
        """Extrapolate the current pace and the mean time between iterations so far."""
        eta = seconds * (end - done)
        if self._outside_until > self._first:
            pause = self._outside / (self._outside_until - self._first)
            eta += pause * (end - self._outside_until)
        return eta

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


def _hours_minutes_seconds(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
