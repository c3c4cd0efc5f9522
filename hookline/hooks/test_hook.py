"""Time the iterations of a test and log them with the ETA."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable
from typing import Any

import torch

from hookline.batches import named_loaders
from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.profiling.timer import Timer

DEFAULT_TIMERS = ("iter", "data", "infer", "post")


@HOOKS.register()
class TestHook(BaseHook):
    """Time a test and log the mean times with the ETA.

    The timers are `iter` (a whole iteration), `data` (waiting for a batch), `infer` and `post`.
    Without a runner, call `tic`, `toc` and `log_stats`.

    Args:
        cfg_filename: Name to log when a test begins.
        logperiod: Number of batches between two log lines.
        num_warmup: Number of first iterations that are not timed.

    Example:
        ```yaml
        hooks:
          - {type: TestHook, logperiod: 10, num_warmup: 5}
        ```
    """

    __test__ = False  # Keeps pytest from collecting this class.
    clock: Callable[[], float] = time.perf_counter

    def __init__(self, cfg_filename: str = "", logperiod: int = 10, num_warmup: int = 5) -> None:
        if logperiod < 1 or num_warmup < 0:
            raise ValueError(
                "TestHook: logperiod must be at least 1 and num_warmup at least 0, "
                f"got {logperiod} and {num_warmup}"
            )
        self.cfg_filename = cfg_filename
        self.logperiod = logperiod
        self.num_warmup = num_warmup
        self.default_timers = DEFAULT_TIMERS
        self.iter = 0
        self.timers: dict[str, Timer] = {}
        for name in self.default_timers:
            self.add_timer(name)

    def before_test_epoch(self, runner: BaseRunner) -> None:
        self.reset_timer()
        self._total = sum(_length(loader) for loader in named_loaders(runner.test_loader).values())
        if self.cfg_filename:
            runner.logger.info("[Testing] %s", self.cfg_filename)
        forward = runner.model.register_forward_hook(lambda *_: self._end_inference())
        runner.evaluation.on_end(forward.remove)
        self._begin_iteration()

    def before_test_iter(self, runner: BaseRunner) -> None:
        self.toc("data")
        self.tic("infer")

    def after_test_iter(self, runner: BaseRunner) -> None:
        # A model with its own test_step may not have been called as a whole.
        self._end_inference()
        self.toc("post")
        self.toc("iter")
        if self._total:
            self.log_stats(self.iter, 1, self._total, self._total)
        self._begin_iteration()

    def log_stats(
        self,
        cur: int,
        start: int,
        end: int,
        total: int,
        ims_per_gpu: int = 1,
        suffix: str = "",
        log_all: bool = False,
    ) -> None:
        """Log the mean times and the ETA, if `cur` is a multiple of `logperiod` or the end."""
        if cur % self.logperiod and cur != end:
            return
        seconds_left = self.timers["iter"].average_time / ims_per_gpu * (end - cur)
        eta = datetime.timedelta(seconds=int(seconds_left))
        whole, *parts = [self._mean_time(name, ims_per_gpu) for name in self.default_timers]
        text = f"[Testing][range:{start}-{end} of {total}][{cur}/{end - start + 1}]"
        text += f"[{whole} = {' + '.join(parts)}][eta: {eta}]"
        if log_all:
            text += "\n|"
            for name in self.timers:
                if name not in DEFAULT_TIMERS:
                    text += f"{name}: {self._mean_time(name, ims_per_gpu)}|"
        logger = logging.getLogger("hookline") if self.runner is None else self.runner.logger
        logger.info(text + suffix)

    def wait(self) -> None:
        """Wait until the GPU has finished its work."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def add_timer(self, name: str) -> Timer:
        """Add a timer and return it; raise ValueError if the name is taken."""
        if name in self.timers:
            raise ValueError(f"a timer {name!r} already exists")
        self.timers[name] = Timer(clock=self._now)
        return self.timers[name]

    def reset_timer(self) -> None:
        """Reset all timers and begin a new warm-up."""
        self.iter = 0
        for timer in self.timers.values():
            timer.reset()

    def tic(self, name: str) -> None:
        """Start a timer and add it if it is new; `iter` also counts the iteration."""
        if name == "iter":
            self.iter += 1
        timer = self.timers.get(name) or self.add_timer(name)
        timer.tic()

    def toc(self, name: str) -> float | None:
        """Stop a timer and return the seconds since `tic`; None during the warm-up."""
        if name not in self.timers:
            raise ValueError(f"no timer {name!r} to stop; known: {', '.join(self.timers)}")
        if self.iter <= self.num_warmup:
            return None
        self.wait()
        return self.timers[name].toc(average=False)

    def _now(self) -> float:
        return self.clock()

    def _mean_time(self, name: str, images: int) -> str:
        return f"{self.timers[name].average_time / images:.3f}s"

    def _begin_iteration(self) -> None:
        self.tic("iter")
        self.tic("data")

    def _end_inference(self) -> None:
        if self.timers["infer"].is_running:
            self.toc("infer")
            self.timers["infer"].cancel()  # During the warm-up `toc` leaves the timer running.
            self.tic("post")


def _length(loader: Any) -> int:
    return len(loader) if hasattr(loader, "__len__") else 0
