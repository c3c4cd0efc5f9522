"""The hooks of Pet, called by a training script or, in a Hookline run, by `PetHooks`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from hookline import hooks
from hookline.compat.missing import not_covered
from hookline.compat.pet.lib.utils.events import EventStorage, EventWriter
from hookline.compat.pet.lib.utils.misc import logging_rank
from hookline.compat.pet.lib.utils.net import get_bn_modules, update_bn_stats
from hookline.compat.pet.lib.utils.timer import Timer
from hookline.intervals import is_due
from hookline.optim.groups import representative_group


class TrainHook:
    """The base class of Pet's hooks.

    The loop calls `before_train()`, `before_step(storage)`,
    `after_step(storage, epoch=…, max_epoch=…)` and `after_train(storage)`.
    """

    def before_train(self, *args: Any, **kwargs: Any) -> None: ...
    def after_train(self, *args: Any, **kwargs: Any) -> None: ...
    def before_step(self, *args: Any, **kwargs: Any) -> None: ...
    def after_step(self, *args: Any, **kwargs: Any) -> None: ...


class PeriodicWriter(TrainHook):
    """A hook that calls writers at an interval and after the last iteration.

    Args:
        writers: The writers.
        max_iter: The number of iterations of the run, or of an epoch in a run by epochs.
        display_iter: The interval in iterations.
    """

    def __init__(self, writers: list[EventWriter], max_iter: int, display_iter: int) -> None:
        for writer in writers:
            assert isinstance(writer, EventWriter), writer
        self.writers = writers
        self.max_iter = max_iter
        self.display_iter = display_iter

    def after_step(
        self,
        storage: EventStorage,
        *args: Any,
        epoch: int | None = None,
        max_epoch: int | None = None,
        **kwargs: Any,
    ) -> None:
        iteration = storage.iter
        if epoch is not None:
            iteration %= self.max_iter
            storage.put_iteration_scalar("epoch", epoch, smoothing_hint=False)
        if is_due(iteration + 1, self.display_iter, end=self.max_iter):
            for writer in self.writers:
                writer.write(epoch=epoch, max_epoch=max_epoch)

    def after_train(self, *args: Any, **kwargs: Any) -> None:
        for writer in self.writers:
            writer.close()


class IterationTimer(TrainHook):
    """A hook that records the `time` of each step, and logs speed and time of hooks at the end.

    Args:
        max_iter: The number of iterations.
        start_iter: The first iteration.
        warmup_iter: The number of warm-up iterations.
        ignore_warmup_time: Leave the warm-up iterations out of all times.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        max_iter: int,
        start_iter: int,
        warmup_iter: int,
        ignore_warmup_time: bool,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.max_iter = max_iter
        self.start_iter = start_iter
        self.warmup_iter = warmup_iter
        self.ignore_warmup_time = ignore_warmup_time
        self.clock = clock
        self.step_timer = Timer(clock)

    def before_train(self, *args: Any, **kwargs: Any) -> None:
        self.start_time = self.clock()
        self.total_timer = Timer(self.clock)
        self.total_timer.pause()

    def before_step(self, *args: Any, **kwargs: Any) -> None:
        self.step_timer.reset()
        self.total_timer.resume()

    def after_step(self, storage: EventStorage, *args: Any, **kwargs: Any) -> None:
        if self.ignore_warmup_time and storage.iter < self.warmup_iter:
            self.start_time = self.clock()
            self.total_timer.reset()
        else:
            storage.put_iteration_scalar("time", self.step_timer.seconds())
        self.total_timer.pause()

    def after_train(self, storage: EventStorage, *args: Any, **kwargs: Any) -> None:
        total = self.clock() - self.start_time
        steps = self.total_timer.seconds()
        count = storage.iter + 1 - self.start_iter - self.warmup_iter
        if count > 0 and steps > 0:
            speed = f"{count} iterations in {_clock(steps)} ({steps / count:.6f} s / it)"
            logging_rank(f"Overall training speed: {speed}")
        logging_rank(f"Total training time: {_clock(total)} ({_clock(total - steps)} on hooks)")


class LRScheduler(TrainHook):
    """A hook that records the rate of the largest parameter group, then steps the scheduler."""

    def __init__(self, optimizer: Any, scheduler: Any) -> None:
        self.optimizer = optimizer
        self.scheduler = scheduler
        self._best_param_group_id = representative_group(optimizer)

    def after_step(self, storage: EventStorage, *args: Any, **kwargs: Any) -> None:
        group = self.optimizer.param_groups[self._best_param_group_id]
        storage.put_iteration_scalar("lr", group["lr"], smoothing_hint=False)
        self.scheduler.step()


class PreciseBN(TrainHook):
    """Sets the statistics of batch norm layers to their averages over several batches.

    Args:
        precise_bn_args: A loader, the model and the device.
        period: The interval in iterations; 0 for the last iteration only.
        num_iter: The number of batches.
        max_iter: The number of iterations of the run, or of an epoch in a run by epochs.
    """

    def __init__(
        self, precise_bn_args: list[Any], period: int, num_iter: int, max_iter: int
    ) -> None:
        self.data_loader, self.model, self.device = precise_bn_args
        self.num_iter = num_iter
        self.period = period
        self.max_iter = max_iter
        self.disabled = not get_bn_modules(self.model)
        self.data_iter: Iterator[Any] | None = None
        if self.disabled:
            logging_rank(
                "PreciseBN is disabled because model does not contain BN layers in training mode."
            )

    def after_step(
        self, storage: EventStorage, *args: Any, epoch: int | None = None, **kwargs: Any
    ) -> None:
        iteration = storage.iter
        is_last_epoch = True
        if epoch is not None:
            iteration %= self.max_iter
            is_last_epoch = epoch == kwargs.get("max_epochs", kwargs.get("max_epoch"))
        done = iteration + 1
        is_last = is_last_epoch and done == self.max_iter
        if is_last or is_due(done, self.period):
            self.update_stats()

    def update_stats(self) -> None:
        """Compute the precise statistics now."""
        if self.disabled:
            return
        logging_rank(
            f"Running precise-BN for {self.num_iter} iterations...  "
            "Note that this could produce different statistics every time."
        )
        with EventStorage():  # values that the model records here do not belong to the run
            update_bn_stats(self.model, self._batches(), self.device, self.num_iter)

    def _batches(self) -> Iterator[Any]:
        """Yield batches without end; a loader that is exhausted starts again."""
        while True:
            if self.data_iter is None:
                self.data_iter = iter(self.data_loader)
            yield from self.data_iter
            self.data_iter = None


class TestHook(hooks.TestHook):
    """Timers for a test: `iter` for whole iterations, `data`, `infer` and `post`.

    `add_timer` adds more, and `log_stats` logs them.
    """

    __test__ = False  # pytest would collect the class because of its name

    def __init__(self, cfg_filename: str, logperiod: int = 10, num_warmup: int = 5) -> None:
        super().__init__(cfg_filename, logperiod, num_warmup)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


__getattr__ = not_covered(
    __name__,
    ["TrainHook", "TestHook", "PeriodicWriter", "IterationTimer", "LRScheduler", "PreciseBN"],
    {
        "build_train_hooks": "make a list of IterationTimer, LRScheduler, PreciseBN and "
        "PeriodicWriter",
        "build_test_hooks": "make a TestHook",
    },
)
