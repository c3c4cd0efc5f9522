"""The training loops of MMEngine, by epochs and by iterations, around Hookline's `Loop`.

A subclass may override `run`, `run_epoch` and `run_iter`, and call `runner.call_hook` as MMEngine's
loops do. The runner then handles requests in `call_hook`, because only the subclass knows when it
counts an iteration or an epoch.
"""

from __future__ import annotations

import bisect
import logging
from collections.abc import Iterator
from typing import Any

import torch

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.registry import LOOPS
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.dataset_meta import set_dataset_meta
from hookline.compat.openmmlab import set_sampler_epoch
from hookline.compat.persistent_workers import continuing_workers, generators_of
from hookline.rng import restore_rng, rng_state


class _TrainLoop(BaseLoop):
    """The counters of both training loops, and when to validate.

    Attributes:
        validated_at: The last number of finished epochs (or iterations) that was validated.
    """

    def __init__(
        self,
        runner: Any,
        dataloader: Any,
        val_begin: int,
        val_interval: int,
        dynamic_intervals: Any,
    ) -> None:
        super().__init__(runner, dataloader)
        self._epoch = 0
        self._iter = 0
        self._max_epochs = 0
        self._max_iters = 0
        self.val_begin = val_begin
        self.val_interval = val_interval
        self.validated_at = 0
        self.stop_training = False
        set_dataset_meta(self.dataloader, runner.visualizer)
        changes = dynamic_intervals or ()
        self.dynamic_milestones = [0, *(begin for begin, _ in changes)]
        self.dynamic_intervals = [val_interval, *(interval for _, interval in changes)]

    max_epochs = property(lambda self: self._max_epochs)
    max_iters = property(lambda self: self._max_iters)
    epoch = property(lambda self: self._epoch)
    iter = property(lambda self: self._iter)

    def is_validation_due(self, done: int, end: int) -> bool:
        """Return whether a validation follows so many finished epochs or iterations."""
        if self.runner.val_loop is None or done == self.validated_at:
            return False
        interval = self._val_interval_after(done)
        return done >= self.val_begin and (done % interval == 0 or done == end)

    def _val_interval_after(self, done: int) -> int:
        """Return the interval of validations after so many finished epochs or iterations."""
        period = bisect.bisect(self.dynamic_milestones, done + 1) - 1
        return int(self.dynamic_intervals[period])

    def _train_on(self, batch_idx: int, data_batch: Any) -> None:
        """Run one iteration."""
        runner = self.runner
        if runner.has_own_dispatch:
            self._train_with_own_dispatch(batch_idx, data_batch)
            return
        runner.loop.begin_iteration(data_batch)
        outputs = runner.model.train_step(runner.batch, optim_wrapper=runner.optim_wrapper)
        with runner.passing(batch_idx=batch_idx, data_batch=runner.batch, outputs=outputs):
            runner.loop.end_iteration()
        self._note_stop()

    def _train_with_own_dispatch(self, batch_idx: int, data_batch: Any) -> None:
        """Run one iteration if a subclass of the runner overrides `call_hook`."""
        runner = self.runner
        runner.batch_idx = batch_idx
        runner.call_hook("before_train_iter", batch_idx=batch_idx, data_batch=data_batch)
        outputs = runner.model.train_step(data_batch, optim_wrapper=runner.optim_wrapper)
        runner.call_hook(
            "after_train_iter", batch_idx=batch_idx, data_batch=data_batch, outputs=outputs
        )
        self._iter += 1
        if hasattr(self, "inner_iter"):
            self.inner_iter = batch_idx + 1
        runner.loop.settle_if_due()
        self._note_stop()

    def _validate_if_due(self, done: int, end: int) -> None:
        if self.runner.stop_reason is None and self.is_validation_due(done, end):
            self.validated_at = done
            self.runner.val_loop.run()
            self.runner.loop.settle_if_due()
            self.runner.loop.await_batch()  # the validation is not a part of that time

    def _note_stop(self) -> None:
        """Set `stop_training`, which subclasses read, if a hook requested a stop."""
        if self.runner.stop_reason is not None:
            self.stop_training = True

    @property
    def _is_stopped(self) -> bool:
        return self.stop_training or self.runner.stop_reason is not None


@LOOPS.register_module(force=True)
class EpochBasedTrainLoop(_TrainLoop):
    """A loop of `max_epochs` that validates every `val_interval` epochs from `val_begin` on.

    Attributes:
        inner_iter: The number of batches of this epoch that are done.
        epoch_rng: The random numbers at the moment when this epoch's batches began.
        worker_rng: Those of persistent workers at that moment.
        resumed_workers: Those of a checkpoint, until the next epoch begins.
    """

    def __init__(
        self,
        runner: Any,
        dataloader: Any,
        max_epochs: int,
        val_begin: int = 1,
        val_interval: int = 1,
        dynamic_intervals: list[tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(runner, dataloader, val_begin, val_interval, dynamic_intervals)
        self._max_epochs = _whole("max_epochs", max_epochs)
        self._max_iters = self._max_epochs * len(self.dataloader)
        self.inner_iter = 0
        self.epoch_rng: dict[str, Any] | None = None
        self.worker_rng: torch.Tensor | None = None
        self.resumed_workers: torch.Tensor | None = None
        self._batches: Iterator[tuple[int, Any]] = iter(())

    @property
    def epoch_length(self) -> int:
        return len(self.dataloader)

    def run(self) -> Any:
        runner = self.runner
        self._warn_about_resume()
        runner.call_hook("before_train")
        if type(self).run_epoch is not EpochBasedTrainLoop.run_epoch:
            self.inner_iter = 0  # a subclass with its own epochs begins them at their first batch
        if self.inner_iter == 0:
            runner.loop.reapply_state()
            runner.validate_if_missed()
        while self._epoch < self._max_epochs and not self._is_stopped:
            self.run_epoch()
            self._decide_current_val_interval()
            if self.inner_iter == 0:
                self._validate_if_due(self._epoch, self._max_epochs)
                runner.close_epoch()
                self._note_stop()
        runner.call_hook("after_train")
        return runner.model

    def _warn_about_resume(self) -> None:
        """Warn if workers keep random numbers between epochs, and checkpoints do not hold them."""
        is_persistent = getattr(self.dataloader, "persistent_workers", False)
        if self._max_epochs > 1 and is_persistent and generators_of(self.dataloader) is None:
            self.runner.logger.warning(
                "train_dataloader: after the first epoch, a resume is exact only if the transforms "
                "draw no random numbers; persistent_workers=False makes it exact for all"
            )

    def run_epoch(self) -> None:
        loop = self.runner.loop
        loop.begin_epoch(self._open_data)
        self.runner.model.train()
        for idx, data_batch in self._batches:
            self.run_iter(idx, data_batch)
            self.inner_iter = idx + 1  # also if a subclass calls the hooks itself
            if self.runner.stop_reason is not None:
                return  # the rest of the epoch follows when the run is resumed
        loop.end_train_epoch()
        # MMEngine counts the epoch and saves before it validates, so this is not `end_epoch`.
        self._epoch += 1
        self.inner_iter = 0
        loop.settle_if_due()
        self._note_stop()

    def run_iter(self, idx: int, data_batch: Any) -> None:
        self.inner_iter = idx
        self._train_on(idx, data_batch)

    def _open_data(self) -> None:
        """Begin the batches that the epoch still has, in the same order after a resume."""
        skip = self.inner_iter
        if skip and self.epoch_rng is not None:
            restore_rng(self.epoch_rng)
        else:
            self.epoch_rng = rng_state()
        with continuing_workers(self.dataloader, self.resumed_workers) as self.worker_rng:
            self._batches = enumerate(self.dataloader)
        self.resumed_workers = None
        if skip:
            self.runner.logger.info(f"skipping {skip} batches of this epoch: they were trained on")
            for _ in range(skip):
                next(self._batches, None)

    def _decide_current_val_interval(self) -> None:
        self.val_interval = self._val_interval_after(self._epoch)


def _whole(name: str, number: float) -> int:
    if int(number) != number:
        raise AssertionError(f"`{name}` should be a integer number, but get {number}")
    return int(number)


class _InfiniteDataloaderIterator:
    """An iterator that reads a loader again and again."""

    def __init__(self, dataloader: Any) -> None:
        self._dataloader = dataloader
        self._iterator = iter(dataloader)
        self._epoch = 0

    def __iter__(self) -> _InfiniteDataloaderIterator:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._epoch += 1
            set_sampler_epoch(self._dataloader, self._epoch)
            self._iterator = iter(self._dataloader)
            return next(self._iterator)


@LOOPS.register_module(force=True)
class IterBasedTrainLoop(_TrainLoop):
    """A loop of `max_iters` that validates every `val_interval` of them from `val_begin` on.

    The whole run is one epoch.
    """

    def __init__(
        self,
        runner: Any,
        dataloader: Any,
        max_iters: int,
        val_begin: int = 1,
        val_interval: int = 1000,
        dynamic_intervals: list[tuple[int, int]] | None = None,
    ) -> None:
        super().__init__(runner, dataloader, val_begin, val_interval, dynamic_intervals)
        self._max_epochs = 1
        self._max_iters = _whole("max_iters", max_iters)
        self.dataloader_iterator = _InfiniteDataloaderIterator(self.dataloader)

    @property
    def epoch_length(self) -> int:
        return self._max_iters

    def run(self) -> Any:
        runner = self.runner
        runner.call_hook("before_train")
        runner.loop.begin_epoch(self._skip_data)
        runner.validate_if_missed()
        while self._iter < self._max_iters and not self._is_stopped:
            runner.model.train()
            self.run_iter(next(self.dataloader_iterator))
            self._decide_current_val_interval()
            self._validate_if_due(self._iter, self._max_iters)
            self._note_stop()
        runner.loop.end_train_epoch()
        if self._iter == self._max_iters:
            runner.close_epoch()
        runner.call_hook("after_train")
        return runner.model

    def run_iter(self, data_batch: Any) -> None:
        self._train_on(self._iter, data_batch)
        self.runner.loop.settle_if_due()  # MMEngine saves the last iteration before it validates

    def _skip_data(self) -> None:
        """Read the batches that were trained on before a resume."""
        if self._iter > 0:
            print_log(
                f"Advance dataloader {self._iter} steps to skip data that has already been trained",
                "current",
                logging.WARNING,
            )
            for _ in range(self._iter):
                next(self.dataloader_iterator)

    def _decide_current_val_interval(self) -> None:
        self.val_interval = self._val_interval_after(self._iter)
