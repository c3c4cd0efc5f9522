"""Record samples, tokens and FLOPs per second, and the model FLOPs utilization (MFU)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hookline.batches import count_samples
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import parameter_error, require_at_least
from hookline.profiling.counting import FlopCount, count_tokens
from hookline.profiling.peaks import peak_flops

COUNTED_ITER = 1  # the second iteration, when lazy layers are initialized


@HOOKS.register()
@dataclass
class ThroughputHook(BaseHook):
    """Record samples, tokens and FLOPs per second, and the model FLOPs utilization (MFU).

    The scalars are `throughput/samples_per_s`, `throughput/tokens_per_s`, `throughput/flops_per_s`
    and `throughput/mfu`. Their time excludes validation and saving. The FLOPs of a sample are
    counted once, over forward and backward of the second iteration. Operations that activation
    checkpointing repeats count twice.

    Args:
        interval: Number of iterations between two records.
        peak_flops: Peak FLOPs per second of the device. None uses the known peak of common GPUs.

    Example:
        ```yaml
        hooks:
          - {type: ThroughputHook, interval: 50, peak_flops: 312.0e+12}
        ```
    """

    interval: int = 50
    peak_flops: float | None = None
    clock: Callable[[], float] = field(default=time.perf_counter, init=False, repr=False)

    # Innermost, so that operations of other hooks are not counted.
    priority = Priority.LOWEST
    needs_after_backward = False

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")
        if self.peak_flops is not None and not self.peak_flops > 0:
            expected = "must be a positive number of operations per second"
            raise parameter_error(self, "peak_flops", expected)
        self._counter: FlopCount | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._count_at = runner.iter + COUNTED_ITER
        self._flops_per_sample = 0.0
        self._peak = self.peak_flops
        if self._peak is None:
            self._peak = peak_flops(runner.device)
        if self._peak is None:
            runner.logger.info(
                "%s: the peak of %s is unknown, so MFU is not recorded; set peak_flops",
                self.name,
                runner.device,
            )
        self._reset()

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._iteration_began = self.clock()

    def before_train_iter(self, runner: BaseRunner) -> None:
        if runner.iter == self._count_at:
            self._counter = FlopCount()
            self._counter.start()

    def after_backward(self, runner: BaseRunner) -> None:
        self._stop_counting()

    def after_train_iter(self, runner: BaseRunner) -> None:
        self._stop_counting()  # A model with its own train_step never calls after_backward.
        now = self.clock()
        samples = count_samples(runner.outputs, runner.batch)
        if self._counter is not None:
            self._flops_per_sample = self._counter.flops / samples
            self._counter = None
            self._reset()  # Counting made this iteration slow.
            return
        self._seconds += now - self._iteration_began
        self._iteration_began = now
        self._samples += samples
        self._tokens += count_tokens(runner.batch)
        if (runner.iter + 1) % self.interval == 0:
            self._record(runner)
            self._reset()

    def after_val(self, runner: BaseRunner) -> None:
        self._iteration_began = self.clock()

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._iteration_began = self.clock()

    def cleanup(self, runner: BaseRunner) -> None:
        self._stop_counting()  # The counted iteration may have failed.

    def _reset(self) -> None:
        self._samples = 0
        self._tokens = 0
        self._seconds = 0.0
        self._iteration_began = self.clock()

    def _stop_counting(self) -> None:
        if self._counter is not None:
            self._counter.stop()

    def _record(self, runner: BaseRunner) -> None:
        scalars = {"throughput/samples_per_s": self._samples / self._seconds}
        if self._tokens:
            scalars["throughput/tokens_per_s"] = self._tokens / self._seconds
        if self._flops_per_sample:
            rate = self._flops_per_sample * self._samples / self._seconds
            scalars["throughput/flops_per_s"] = rate
            if self._peak is not None:
                scalars["throughput/mfu"] = rate / self._peak
        runner.events.put_scalars(scalars, smoothing_hint=False)
