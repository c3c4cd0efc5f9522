"""Pet's hooks. A training script calls them itself, or `hookline.compat.pet.PetHooks` does in a Hookline run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from hookline import hooks
from hookline.compat.missing import not_covered
from hookline.compat.pet.lib.utils.events import EventStorage, EventWriter
from hookline.compat.pet.lib.utils.misc import logging_rank
from hookline.compat.pet.lib.utils.net import get_bn_modules, update_bn_stats
from hookline.compat.pet.lib.utils.timer import Timer
from hookline.optim.groups import representative_group


class TrainHook:
    """Four moments: `before_train()`, `before_step(storage)`, `after_step(storage, epoch=…, max_epoch=…)`, `after_train(storage)`."""

    def before_train(self, *args: Any, **kwargs: Any) -> None: ...
    def after_train(self, *args: Any, **kwargs: Any) -> None: ...
    def before_step(self, *args: Any, **kwargs: Any) -> None: ...
    def after_step(self, *args: Any, **kwargs: Any) -> None: ...


class PeriodicWriter(TrainHook):
    """Have writers write every `display_iter` iterations and after the last one of `max_iter` (of an epoch, if there are epochs)."""

    def __init__(self, writers: list[EventWriter], max_iter: int, display_iter: int) -> None:
        for writer in writers:
            assert isinstance(writer, EventWriter), writer
        self.writers, self.max_iter, self.display_iter = writers, max_iter, display_iter

    def after_step(self, storage: EventStorage, *args: Any, epoch: int | None = None, max_epoch: int | None = None, **kwargs: Any) -> None:
        iteration = storage.iter if epoch is None else storage.iter % self.max_iter
        if epoch is not None:
            storage.put_scalar("epoch", epoch, smoothing_hint=False)
        if (iteration + 1) % self.display_iter == 0 or iteration == self.max_iter - 1:
            for writer in self.writers:
                writer.write(epoch=epoch, max_epoch=max_epoch)

    def after_train(self, *args: Any, **kwargs: Any) -> None:
        for writer in self.writers:
            writer.close()


class IterationTimer(TrainHook):
    """Record the `time` of each step, and tell at the end how fast training was and how long hooks took.

    With `ignore_warmup_time` the first `warmup_iter` iterations are left out of all of it.
    """

    def __init__(self, max_iter: int, start_iter: int, warmup_iter: int, ignore_warmup_time: bool) -> None:
        self.max_iter, self.start_iter, self.warmup_iter, self.ignore_warmup_time = max_iter, start_iter, warmup_iter, ignore_warmup_time
        self.step_timer = Timer()

    def before_train(self, *args: Any, **kwargs: Any) -> None:
        self.start_time = time.perf_counter()
        self.total_timer = Timer()
        self.total_timer.pause()

    def before_step(self, *args: Any, **kwargs: Any) -> None:
        self.step_timer.reset()
        self.total_timer.resume()

    def after_step(self, storage: EventStorage, *args: Any, **kwargs: Any) -> None:
        if self.ignore_warmup_time and storage.iter < self.warmup_iter:
            self.start_time = time.perf_counter()
            self.total_timer.reset()
        else:
            storage.put_scalars(time=self.step_timer.seconds())
        self.total_timer.pause()

    def after_train(self, storage: EventStorage, *args: Any, **kwargs: Any) -> None:
        total, steps = time.perf_counter() - self.start_time, self.total_timer.seconds()
        count = storage.iter + 1 - self.start_iter - self.warmup_iter
        if count > 0 and steps > 0:
            logging_rank(f"Overall training speed: {count} iterations in {_clock(steps)} ({steps / count:.6f} s / it)")
        logging_rank(f"Total training time: {_clock(total)} ({_clock(total - steps)} on hooks)")


class LRScheduler(TrainHook):
    """Record as `lr` the rate of the group with most parameters, and step the scheduler, after every step."""

    def __init__(self, optimizer: Any, scheduler: Any) -> None:
        self.optimizer, self.scheduler = optimizer, scheduler
        self._best_param_group_id = representative_group(optimizer)

    def after_step(self, storage: EventStorage, *args: Any, **kwargs: Any) -> None:
        storage.put_scalar("lr", self.optimizer.param_groups[self._best_param_group_id]["lr"], smoothing_hint=False)
        self.scheduler.step()


class PreciseBN(TrainHook):
    """Give batch norm layers true averages over `num_iter` batches, every `period` iterations (0: never) and after the last one.

    `precise_bn_args` are a loader, the model and the device.
    """

    def __init__(self, precise_bn_args: list[Any], period: int, num_iter: int, max_iter: int) -> None:
        self.data_loader, self.model, self.device = precise_bn_args
        self.num_iter, self.period, self.max_iter = num_iter, period, max_iter
        self.disabled = not get_bn_modules(self.model)
        self.data_iter: Iterator[Any] | None = None
        if self.disabled:
            logging_rank("PreciseBN is disabled because model does not contain BN layers in training mode.")

    def after_step(self, storage: EventStorage, *args: Any, epoch: int | None = None, **kwargs: Any) -> None:
        done = (storage.iter if epoch is None else storage.iter % self.max_iter) + 1
        final = done == self.max_iter and (epoch is None or epoch == kwargs.get("max_epochs", kwargs.get("max_epoch")))
        if final or (self.period > 0 and done % self.period == 0):
            self.update_stats()

    def update_stats(self) -> None:
        """Give the model precise statistics now."""
        if self.disabled:
            return
        logging_rank(f"Running precise-BN for {self.num_iter} iterations...  Note that this could produce different statistics every time.")
        with EventStorage():  # what the model records meanwhile is not the run's
            update_bn_stats(self.model, self._batches(), self.device, self.num_iter)

    def _batches(self) -> Iterator[Any]:
        """Always the next ones of the loader, from its beginning when it is through."""
        while True:
            self.data_iter = iter(self.data_loader) if self.data_iter is None else self.data_iter
            yield from self.data_iter
            self.data_iter = None


class TestHook(hooks.TestHook):
    """Timers for a test: whole iterations (`iter`), `data`, `infer` and `post`, and any that `add_timer` adds; see `log_stats`."""

    __test__ = False  # pytest takes it for a test by its name

    def __init__(self, cfg_filename: str, logperiod: int = 10, num_warmup: int = 5) -> None:
        super().__init__(cfg_filename, logperiod, num_warmup)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


__getattr__ = not_covered(
    __name__,
    ["TrainHook", "TestHook", "PeriodicWriter", "IterationTimer", "LRScheduler", "PreciseBN"],
    {
        "build_train_hooks": "make a list of IterationTimer, LRScheduler, PreciseBN and PeriodicWriter",
        "build_test_hooks": "make a TestHook",
    },
)
