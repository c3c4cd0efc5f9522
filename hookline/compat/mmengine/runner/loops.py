"""The training loops, by epochs and by iterations. Requests are settled by the runner, when all hooks of a stage have run."""

from __future__ import annotations

import bisect
import logging
from collections.abc import Iterator
from typing import Any

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.registry import LOOPS
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.evaluation_loops import TestLoop, ValLoop, note_dataset_meta
from hookline.compat.mmengine.runner.utils import calc_dynamic_intervals
from hookline.engine.capture import restore_rng, rng_state


class _TrainLoop(BaseLoop):
    """What both training loops share: counters, and when to validate."""

    def __init__(self, runner: Any, dataloader: Any, val_begin: int, val_interval: int, dynamic_intervals: Any) -> None:
        super().__init__(runner, dataloader)
        self._epoch = self._iter = 0
        self._max_epochs = self._max_iters = 0
        self.val_begin, self.val_interval = val_begin, val_interval
        self.stop_training = False
        note_dataset_meta(self.dataloader, runner.visualizer)
        self.dynamic_milestones, self.dynamic_intervals = calc_dynamic_intervals(val_interval, dynamic_intervals)

    max_epochs = property(lambda self: self._max_epochs)
    max_iters = property(lambda self: self._max_iters)
    epoch = property(lambda self: self._epoch)
    iter = property(lambda self: self._iter)

    def validation_due(self, done: int, end: int) -> bool:
        """Whether a validation follows when so many epochs or iterations are done."""
        interval = self.dynamic_intervals[bisect.bisect(self.dynamic_milestones, done + 1) - 1]
        return self.runner.val_loop is not None and done >= self.val_begin and (done % interval == 0 or done == end)

    def _step(self, batch_idx: int, data_batch: Any) -> None:
        runner = self.runner
        runner.call_hook("before_train_iter", batch_idx=batch_idx, data_batch=data_batch)
        outputs = runner.model.train_step(data_batch, optim_wrapper=runner.optim_wrapper)
        runner.call_hook("after_train_iter", batch_idx=batch_idx, data_batch=data_batch, outputs=outputs)
        self._iter += 1

    @property
    def _stopped(self) -> bool:
        return self.stop_training or self.runner.stop_reason is not None


@LOOPS.register_module()
class EpochBasedTrainLoop(_TrainLoop):
    """Trains for `max_epochs`; validates every `val_interval` epochs from `val_begin` on."""

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
        if int(max_epochs) != max_epochs:
            raise AssertionError(f"`max_epochs` should be a integer number, but get {max_epochs}.")
        self._max_epochs = int(max_epochs)
        self._max_iters = self._max_epochs * len(self.dataloader)
        self.inner_iter = 0  # batches of this epoch that are done
        self.epoch_rng: dict[str, Any] | None = None  # random numbers as they were when this epoch's batches began

    def run(self) -> Any:
        self.runner.call_hook("before_train")
        if type(self).run_epoch is not EpochBasedTrainLoop.run_epoch:
            self.inner_iter = 0  # an epoch of the user's own begins at its beginning
        if self.inner_iter == 0:
            self.runner.finish_resume()
            self.runner.validate_if_missed()
        while self._epoch < self._max_epochs and not self._stopped:
            self.run_epoch()
            self._decide_current_val_interval()
            if self.runner.stop_reason is None and self.inner_iter == 0 and self.validation_due(self._epoch, self._max_epochs):
                self.runner.val_loop.run()
        self.runner.call_hook("after_train")
        return self.runner.model

    def run_epoch(self) -> None:
        self.runner.call_hook("before_train_epoch")
        self.runner.model.train()
        for idx, data_batch in self._batches():
            self.run_iter(idx, data_batch)
            self.inner_iter = idx + 1
            if self.runner.stop_reason is not None:
                return  # asked for by a signal or a hook of Hookline's own; what is left of the epoch comes when it is resumed
        self.runner.call_hook("after_train_epoch")
        self._epoch += 1
        self.inner_iter = 0

    def run_iter(self, idx: int, data_batch: Any) -> None:
        self._step(idx, data_batch)

    def _batches(self) -> Iterator[tuple[int, Any]]:
        """The batches of the epoch; after a resume inside of it those that are left, in the same order."""
        skip = self.inner_iter
        if skip and self.epoch_rng is not None:
            restore_rng(self.epoch_rng)
        else:
            self.epoch_rng = rng_state()
        numbered = enumerate(self.dataloader)
        if skip:
            self.runner.logger.info(f"{skip} batches of this epoch were trained on already and are skipped")
            for _ in range(skip):
                next(numbered, None)
            self.runner.finish_resume()
        return numbered

    def _decide_current_val_interval(self) -> None:
        self.val_interval = self.dynamic_intervals[bisect.bisect(self.dynamic_milestones, self._epoch + 1) - 1]


class _InfiniteDataloaderIterator:
    """A loader read again and again."""

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
            batch_sampler = getattr(self._dataloader, "batch_sampler", None)
            sampler: Any
            for sampler in (getattr(self._dataloader, "sampler", None), getattr(batch_sampler, "sampler", None)):
                if hasattr(sampler, "set_epoch"):
                    sampler.set_epoch(self._epoch)
                    break
            self._iterator = iter(self._dataloader)
            return next(self._iterator)


@LOOPS.register_module()
class IterBasedTrainLoop(_TrainLoop):
    """Trains for `max_iters`; validates every `val_interval` iterations from `val_begin` on."""

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
        if int(max_iters) != max_iters:
            raise AssertionError(f"`max_iters` should be a integer number, but get {max_iters}")
        self._max_epochs, self._max_iters = 1, int(max_iters)
        self.dataloader_iterator = _InfiniteDataloaderIterator(self.dataloader)

    def run(self) -> Any:
        self.runner.call_hook("before_train")
        self.runner.call_hook("before_train_epoch")
        if self._iter > 0:
            print_log(f"Advance dataloader {self._iter} steps to skip data that has already been trained", "current", logging.WARNING)
            for _ in range(self._iter):
                next(self.dataloader_iterator)
        self.runner.finish_resume()
        self.runner.validate_if_missed()
        while self._iter < self._max_iters and not self._stopped:
            self.runner.model.train()
            self.run_iter(next(self.dataloader_iterator))
            self._decide_current_val_interval()
            if self.runner.stop_reason is None and self.validation_due(self._iter, self._max_iters):
                self.runner.val_loop.run()
        self.runner.call_hook("after_train_epoch")
        self.runner.call_hook("after_train")
        return self.runner.model

    def run_iter(self, data_batch: Any) -> None:
        self._step(self._iter, data_batch)

    def _decide_current_val_interval(self) -> None:
        self.val_interval = self.dynamic_intervals[bisect.bisect(self.dynamic_milestones, self._iter + 1) - 1]


__all__ = ["EpochBasedTrainLoop", "IterBasedTrainLoop", "TestLoop", "ValLoop"]
