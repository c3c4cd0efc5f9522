"""How long testing takes, and how long it will go on."""

from __future__ import annotations

import datetime
import logging
import time
from dataclasses import dataclass, field
from typing import Any

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.engine.evaluation import named_loaders

DEFAULT_TIMERS = ("iter", "data", "infer", "post")


@dataclass
class Timer:
    """Adds up the times between `tic` and `toc`."""

    total_time: float = 0.0
    calls: int = 0
    diff: float = 0.0
    _start: float | None = field(default=None, repr=False)

    @property
    def average_time(self) -> float:
        return self.total_time / self.calls if self.calls else 0.0

    def tic(self) -> None:
        self._start = time.perf_counter()

    def toc(self, average: bool = True) -> float:
        """Seconds since `tic`, or their mean over all calls; 0 without a `tic`."""
        if self._start is not None:
            self.diff, self._start = time.perf_counter() - self._start, None
            self.total_time += self.diff
            self.calls += 1
        return self.average_time if average else self.diff

    def reset(self) -> None:
        self.total_time, self.calls, self.diff, self._start = 0.0, 0, 0.0, None


@HOOKS.register()
class TestHook(BaseHook):
    """Time a test: whole iterations (`iter`), waiting for `data`, `infer` and `post`; log them every `logperiod` batches, with the ETA.

    The first `num_warmup` iterations are not counted. Outside of a runner `tic`, `toc` and `log_stats` do the same by hand.
    """

    __test__ = False  # pytest takes it for a test by its name

    def __init__(self, cfg_filename: str = "", logperiod: int = 10, num_warmup: int = 5) -> None:
        if logperiod < 1 or num_warmup < 0:
            raise ValueError(f"TestHook: logperiod must be at least 1 and num_warmup not negative, got {logperiod} and {num_warmup}")
        self.cfg_filename, self.logperiod, self.num_warmup = cfg_filename, logperiod, num_warmup
        self.default_timers, self.iter = DEFAULT_TIMERS, 0
        self.timers: dict[str, Timer] = {}
        for name in self.default_timers:
            self.add_timer(name)

    def before_test_epoch(self, runner: BaseRunner) -> None:
        self.reset_timer()
        self._total = sum(_length(loader) for loader in named_loaders(runner.test_loader).values())
        if self.cfg_filename:
            runner.logger.info("[Testing] %s", self.cfg_filename)
        forward = runner.model.register_forward_hook(lambda *_: self._inferred())
        runner.evaluation.undo_with(forward.remove)
        self._next()

    def before_test_iter(self, runner: BaseRunner) -> None:
        self.toc("data")
        self.tic("infer")

    def after_test_iter(self, runner: BaseRunner) -> None:
        self._inferred()  # a model with a test_step of its own may not have been called as a whole
        for name in ("post", "iter"):
            self.toc(name)
        if self._total:
            self.log_stats(self.iter, 1, self._total, self._total)
        self._next()

    def log_stats(self, cur: int, start: int, end: int, total: int, ims_per_gpu: int = 1, suffix: str = "", log_all: bool = False) -> None:
        """Log the mean times and the ETA, if `cur` is a multiple of `logperiod` or the end."""
        if cur % self.logperiod and cur != end:
            return
        eta = datetime.timedelta(seconds=int(self.timers["iter"].average_time / ims_per_gpu * (end - cur)))
        times = [self.timers[name].average_time / ims_per_gpu for name in self.default_timers]
        text = f"[Testing][range:{start}-{end} of {total}][{cur}/{end - start + 1}]"
        whole, *parts = [f"{seconds:.3f}s" for seconds in times]
        text += f"[{whole} = {' + '.join(parts)}][eta: {eta}]"
        if log_all:
            others = {name: timer.average_time / ims_per_gpu for name, timer in self.timers.items() if name not in DEFAULT_TIMERS}
            text += "\n|" + "".join(f"{name}: {seconds:.3f}s|" for name, seconds in others.items())
        logger = logging.getLogger("hookline") if self.runner is None else self.runner.logger
        logger.info(text + suffix)

    def wait(self) -> None:
        """Until the GPU has done all it was given."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def add_timer(self, name: str) -> Timer:
        """A new timer; ValueError if there is one of that name."""
        if name in self.timers:
            raise ValueError(f"there is a timer {name!r} already")
        self.timers[name] = Timer()
        return self.timers[name]

    def reset_timer(self) -> None:
        """Start all over, warm-up included."""
        self.iter = 0
        for timer in self.timers.values():
            timer.reset()

    def tic(self, name: str) -> None:
        """Start a timer, which is made if there is none; `iter` also counts the iteration."""
        self.iter += name == "iter"
        (self.timers.get(name) or self.add_timer(name)).tic()

    def toc(self, name: str) -> float | None:
        """The seconds since `tic`; None during the warm-up."""
        if name not in self.timers:
            raise ValueError(f"there is no timer {name!r} to stop; known: {', '.join(self.timers)}")
        if self.iter <= self.num_warmup:
            return None
        self.wait()
        return self.timers[name].toc(average=False)

    def _next(self) -> None:
        self.tic("iter")
        self.tic("data")

    def _inferred(self) -> None:
        if self.timers["infer"]._start is not None:
            self.toc("infer")
            self.timers["infer"]._start = None
            self.tic("post")


def _length(loader: Any) -> int:
    return len(loader) if hasattr(loader, "__len__") else 0
