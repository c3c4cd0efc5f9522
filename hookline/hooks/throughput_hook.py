"""How much work is done in a second, and how much of what the device could do that is."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.profiling.counting import FlopCount, count_samples, count_tokens
from hookline.profiling.peaks import peak_flops

COUNTED = 1  # the iteration of this process whose operations are counted: the second, when lazy parts are there


@HOOKS.register()
@dataclass
class ThroughputHook(BaseHook):
    """Record samples, tokens and floating point operations a second, and the share of the device's peak they are (MFU).

    Every `interval` iterations, as `throughput/samples_per_s`, `/tokens_per_s`, `/flops_per_s` and `/mfu`. Validation and saving
    are not part of the time. Operations are counted once, in the second iteration, forward and backward, for every sample alike;
    what activation checkpointing computes twice counts twice. `peak_flops` is the device's peak; common GPUs are known.
    """

    interval: int = 50
    peak_flops: float | None = None

    priority = Priority.LOWEST  # nearest to the forward, so that no other hook's operations are counted

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"ThroughputHook: interval must be at least 1, got {self.interval}")
        if self.peak_flops is not None and not self.peak_flops > 0:
            raise ValueError(f"ThroughputHook: peak_flops is a number of operations a second, got {self.peak_flops}")
        self._counter: FlopCount | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._count_at = runner.iter + COUNTED
        self._per_sample = 0.0
        self._peak = self.peak_flops if self.peak_flops is not None else peak_flops(runner.device)
        if self._peak is None:
            runner.logger.info("%s: the peak of %s is not known, so there is no MFU; give peak_flops", self.name, runner.device)
        self._begin()

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._resumed = time.perf_counter()

    def before_train_iter(self, runner: BaseRunner) -> None:
        if runner.iter == self._count_at:
            self._counter = FlopCount()
            self._counter.start()

    def after_backward(self, runner: BaseRunner) -> None:
        self._stop_counting()

    def after_train_iter(self, runner: BaseRunner) -> None:
        self._stop_counting()  # also where nobody calls after_backward
        now = time.perf_counter()
        samples = count_samples(runner.outputs, runner.batch)
        if self._counter is not None:
            self._per_sample, self._counter = self._counter.flops / samples, None
            self._begin()  # counting was slow
            return
        self._seconds += now - self._resumed
        self._resumed = now
        self._samples += samples
        self._tokens += count_tokens(runner.batch)
        if (runner.iter + 1) % self.interval == 0:
            self._record(runner)
            self._begin()

    def after_val(self, runner: BaseRunner) -> None:
        self._resumed = time.perf_counter()

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._resumed = time.perf_counter()

    def cleanup(self, runner: BaseRunner) -> None:
        self._stop_counting()  # an iteration failed while it was counted

    def _begin(self) -> None:
        self._samples = self._tokens = 0
        self._seconds, self._resumed = 0.0, time.perf_counter()

    def _stop_counting(self) -> None:
        if self._counter is not None:
            self._counter.stop()

    def _record(self, runner: BaseRunner) -> None:
        scalars = {"samples_per_s": self._samples / self._seconds}
        if self._tokens:
            scalars["tokens_per_s"] = self._tokens / self._seconds
        if self._per_sample:
            scalars["flops_per_s"] = self._per_sample * self._samples / self._seconds
            if self._peak is not None:
                scalars["mfu"] = scalars["flops_per_s"] / self._peak
        runner.events.put_scalars({f"throughput/{name}": value for name, value in scalars.items()}, smoothing_hint=False)
