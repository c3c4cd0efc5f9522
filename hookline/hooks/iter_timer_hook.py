"""How long iterations take, what they spend it on, and when the run will be over."""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import dataclass
from datetime import timedelta
from time import perf_counter

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.profiling.counting import count_samples

MOST = 1024  # iterations that may be noted before something is made of them


@HOOKS.register()
@dataclass
class IterTimerHook(BaseHook):
    """Record how long iterations take, and say at the end how fast training was.

    Every iteration has its `time` and `data_time` (waiting for the batch). Every `interval` iterations come `eta`, which counts
    the validations and saves still to come, `time/samples_per_s`, `time/iters_per_s`, and in seconds `time/data`, `/forward`,
    `/backward`, `/optimizer` and `/hooks`, from iterations that were timed in detail. The first `warmup_iter` iterations of a
    process are left out of rates, ETA and speed, and with `ignore_warmup_time` of `time` and the total as well.

    An iteration only notes the clock. The times are worked out for many iterations at once, when someone reads the events.
    """

    interval: int = 50
    log_eta: bool = True
    warmup_iter: int = 3
    ignore_warmup_time: bool = False

    priority = Priority.LOW

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"IterTimerHook: interval must be at least 1, got {self.interval}")
        if self.warmup_iter < 0:
            raise ValueError(f"IterTimerHook: warmup_iter must be at least 0, got {self.warmup_iter}")

    def before_train(self, runner: BaseRunner) -> None:
        self._started = perf_counter()
        self._warm = runner.iter + self.warmup_iter
        self._first, self._outside, self._outside_at = runner.iter, 0.0, runner.iter  # seconds between iterations, up to which one
        self._seconds, self._iters, self._warmup = 0.0, 0, 0.0  # after the warm-up, and the seconds of that
        self._then = 0.0, 0  # the same when they were last reported
        self._batch_size = 0  # of a whole batch: to count in every iteration would take long
        self._phases = runner.costs.measured()[0], dict(runner.costs.measured()[1])
        self._noted: list[tuple[int, float, float]] = []  # iteration, its end, and how long it waited for its batch
        self._due = runner.iter  # when to look at them unasked
        self._go_on(runner)
        runner.events.sources.append(self._work_out)

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._pause(runner)

    def after_train_iter(self, runner: BaseRunner) -> None:
        self._noted.append((runner.iter, perf_counter(), runner.data_time))
        if runner.iter >= self._due:
            self._work_out()
            self._batch_size = max(self._batch_size, count_samples(runner.outputs, runner.batch))  # an epoch's last one may be small
            if (runner.iter + 1) % self.interval == 0:
                self._report(runner)
            self._due = runner.iter + min(self.interval - (runner.iter + 1) % self.interval, MOST)

    def after_val(self, runner: BaseRunner) -> None:
        self._pause(runner)

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._pause(runner)

    def after_train(self, runner: BaseRunner) -> None:
        self._work_out()
        if not self._iters:
            return
        total = perf_counter() - self._started
        samples, phases = runner.costs.measured()
        seconds = self._seconds - (phases["hooks"] / samples * self._iters if samples else 0.0)
        speed = f"{self._iters} iterations in {_clock(seconds)} ({seconds / self._iters:.6f} s / it)"
        runner.logger.info("Overall training speed: %s", speed)
        rest = max(0.0, total - seconds - self._warmup)
        runner.logger.info("Total training time: %s (%s on hooks, validations and saves)", _clock(total), _clock(rest))

    def cleanup(self, runner: BaseRunner) -> None:
        if self._work_out in runner.events.sources:
            runner.events.sources.remove(self._work_out)

    def _pause(self, runner: BaseRunner) -> None:
        """What came since the last iteration was no iteration."""
        if self._work_out in runner.events.sources:  # else it is an evaluation without training
            self._work_out()
            self._outside += perf_counter() - self._asked
            self._outside_at = runner.iter
            self._go_on(runner)

    def _go_on(self, runner: BaseRunner) -> None:
        """The next iteration begins now."""
        self._asked, self._epoch = perf_counter(), runner.epoch
        self._due = runner.iter  # the first tells how large a batch is

    def _work_out(self) -> None:
        """Make times of what was noted."""
        if not self._noted:
            return
        noted, self._noted = self._noted, []
        iterations, ends, waits = zip(*noted, strict=True)
        seconds = [end - begin for begin, end in zip((self._asked, *ends), ends, strict=False)]
        self._asked = ends[-1]
        warm = bisect_left(iterations, self._warm)  # so many of them belong to the warm-up
        self._seconds += sum(seconds[warm:])
        self._iters += len(ends) - warm
        if not self.ignore_warmup_time:
            self._warmup += sum(seconds[:warm])
            warm = 0
        elif warm:
            self._started = ends[warm - 1]
        since = time.time() - perf_counter()
        moments = [(iteration, self._epoch, since + end) for iteration, end, _ in noted[warm:]]
        self.runner.events.put_history("time", seconds[warm:], moments)
        self.runner.events.put_history("data_time", waits[warm:], moments)

    def _report(self, runner: BaseRunner) -> None:
        seconds, iters = self._seconds - self._then[0], self._iters - self._then[1]
        if iters:
            rate = iters / seconds
            scalars = {"time/iters_per_s": rate, "time/samples_per_s": rate * self._batch_size, **self._phase_times(runner)}
            if self.log_eta and runner.max_iters is not None:
                scalars["eta"] = self._eta(runner.iter + 1, runner.max_iters, seconds / iters)
            runner.events.put_scalars(scalars, smoothing_hint=False)
            self._then = self._seconds, self._iters

    def _eta(self, done: int, end: int, seconds: float) -> float:
        """At today's pace, with as much time between iterations as there was so far."""
        eta = seconds * (end - done)
        if self._outside_at > self._first:
            eta += self._outside / (self._outside_at - self._first) * (end - self._outside_at)
        return eta

    def _phase_times(self, runner: BaseRunner) -> dict[str, float]:
        """Means over the iterations that were timed since the last report."""
        samples, phases = runner.costs.measured()
        count, before = samples - self._phases[0], self._phases[1]
        self._phases = samples, dict(phases)
        return {f"time/{name}": (value - before.get(name, 0.0)) / count for name, value in phases.items()} if count > 0 else {}


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
