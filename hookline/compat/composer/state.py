"""Composer's State and Logger, updated from a run."""

from __future__ import annotations

import copy
import math
import time
import weakref
from datetime import timedelta
from typing import Any

import torch
from composer.core import State, Timestamp
from composer.devices import DeviceCPU, DeviceGPU
from composer.loggers import Logger, LoggerDestination
from composer.models import ComposerModel

from hookline.batches import unpack
from hookline.compat.foreign.facade import missing_attribute
from hookline.compat.foreign.module import SharedMode, share_parts
from hookline.compat.foreign.steps import accumulation_steps, count_optimizer_steps
from hookline.engine import BaseRunner, StopReason
from hookline.errors import HooklineError
from hookline.optim.schedulers import each_scheduler

_run_states: weakref.WeakKeyDictionary[BaseRunner, RunState] = weakref.WeakKeyDictionary()

DATA = ("_dataloader", "_dataloader_label", "_dataloader_len")  # set by State.set_dataloader


class RunState(State):  # type: ignore[misc]
    """A real State, whose timestamps are read from the run when they are needed.

    A batch in Composer is an optimizer step.
    """

    stands_for = "state"

    def __init__(self, runner: BaseRunner) -> None:
        self.__dict__["_runner"] = weakref.ref(runner)
        self.__dict__["_started_at"] = time.monotonic()
        self.steps_at_epoch = 0  # optimizer steps at the beginning of the epoch
        self.accumulated = accumulation_steps(runner)
        self._batch_size = 0  # samples of a full batch
        optimizers: Any = runner.optimizer
        if isinstance(optimizers, dict):
            optimizers = list(optimizers.values())
        super().__init__(
            model=Model(runner),
            rank_zero_seed=runner.seed or 0,
            run_name=runner.work_dir.name or "run",
            device=DeviceGPU() if runner.device.type == "cuda" else DeviceCPU(),
            max_duration=_duration(runner),
            train_dataloader=runner.train_loader,
            optimizers=optimizers,
        )
        self.schedulers = list(each_scheduler(runner.scheduler))
        self.logger = Logger(self, [EventsDestination(runner)])
        self.begin()

    @classmethod
    def for_runner(cls, runner: BaseRunner) -> RunState:
        """Return the state of a runner; the first call makes it."""
        if runner not in _run_states:
            _run_states[runner] = cls(runner)
        return _run_states[runner]

    @property
    def timestamp(self) -> Timestamp:
        """The progress of the run."""
        runner = self._runner()
        steps = runner.optimizer_steps
        if self._is_epoch_over():
            return self._make_timestamp(runner.epoch + 1, steps, 0)
        return self._make_timestamp(runner.epoch, steps, steps - self.steps_at_epoch)

    @timestamp.setter
    def timestamp(self, value: Timestamp) -> None:
        """Ignore the value: the run counts its progress."""

    @property
    def previous_timestamp(self) -> Timestamp | None:
        """The progress before the last step or, at the end of an epoch, before it was counted."""
        runner = self._runner()
        steps = runner.optimizer_steps
        if not steps:
            return None
        steps_in_epoch = steps - self.steps_at_epoch
        if self._is_epoch_over():
            return self._make_timestamp(runner.epoch, steps, steps_in_epoch)
        return self._make_timestamp(runner.epoch, steps - 1, max(steps_in_epoch - 1, 0))

    @previous_timestamp.setter
    def previous_timestamp(self, value: Timestamp | None) -> None:
        """Ignore the value: the run counts its progress."""

    def _is_epoch_over(self) -> bool:
        """Return whether the epoch's last batch is done and the epoch is not counted yet."""
        runner = self._runner()
        return runner.epoch_length is not None and runner.inner_iter >= runner.epoch_length

    def _make_timestamp(self, epoch: int, batch: int, batch_in_epoch: int) -> Timestamp:
        # The batches of an evaluation may be larger, and the last one of an epoch smaller.
        if self.__dict__.get("_dataloader_label") == "train":
            size = _count_samples(self._runner().batch) * self.accumulated
            self._batch_size = max(self._batch_size, size)
        return Timestamp(
            epoch=epoch,
            batch=batch,
            sample=batch * self._batch_size,
            batch_in_epoch=batch_in_epoch,
            sample_in_epoch=batch_in_epoch * self._batch_size,
            total_wct=timedelta(seconds=time.monotonic() - self._started_at),
            epoch_wct=timedelta(0),
            batch_wct=timedelta(0),
        )

    def stop_training(self) -> None:
        self._runner().request_stop(StopReason("requested a stop", self._hook.name))

    def check(self, hook: Any) -> None:
        """Raise an error if an algorithm has replaced the model or the optimizer."""
        if self.model.__dict__.get("source") is not self._runner().model:
            raise HooklineError(
                "replaces the model of the run, which is not supported",
                component=hook.name,
                parameter="model",
            )
        optimizer = self._runner().optimizer
        if not isinstance(optimizer, torch.optim.Optimizer):
            return
        if len(self.optimizers) != 1 or self.optimizers[0] is not optimizer:
            raise HooklineError(
                "replaces the optimizer of the run, which is not supported",
                component=hook.name,
                parameter="optimizer",
            )

    def begin(self) -> None:
        """Read the lengths of the run and its epochs, once: reading them at each event is slow."""
        runner = self._runner()
        self.accumulated = accumulation_steps(runner)
        length = -1
        if runner.epoch_length is not None:
            length = math.ceil(runner.epoch_length / self.accumulated)
        self.set_dataloader(runner.val_loader, "eval")
        self._eval_data: dict[str, Any] = {name: self.__dict__[name] for name in DATA}
        self.set_dataloader(runner.train_loader, "train", length)
        self._train_data: dict[str, Any] = {name: self.__dict__[name] for name in DATA}

    def select_train_data(self) -> None:
        """Let `state.dataloader` be the training data."""
        self.__dict__.update(self._train_data)

    def select_eval_data(self) -> None:
        """Let `state.dataloader` be the validation data."""
        self.__dict__.update(self._eval_data)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(self, name)


class Model(ComposerModel):  # type: ignore[misc]
    """The run's model as a ComposerModel, with a `loss` of outputs and a batch."""

    stands_for = "state.model"
    training = SharedMode()

    def __init__(self, runner: BaseRunner, source: torch.nn.Module | None = None) -> None:
        super().__init__()
        share_parts(self, source or runner.model)
        self.__dict__["_runner"] = weakref.ref(runner)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return Model(self._runner(), copy.deepcopy(self.source, memo))

    def forward(self, batch: Any) -> Any:
        inputs, _ = split_batch(batch)
        return self.source(inputs)

    def loss(self, outputs: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        runner = self._runner()
        if runner is None or runner.loss_fn is None:
            raise HooklineError(
                "a callback or algorithm of Composer computes the loss, but the run has no "
                "loss_fn; pass loss_fn"
            )
        _, targets = split_batch(batch)
        return runner.loss_fn(outputs, targets, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            source = self.__dict__.get("source")
            if source is not None and hasattr(source, name):
                return getattr(source, name)
            if "_runner" in self.__dict__:  # the state knows which callback is running
                state = RunState.for_runner(self._runner())
                self.__dict__["_hook"] = state.__dict__.get("_hook")
            raise missing_attribute(self, name) from None


def split_batch(batch: Any) -> tuple[Any, Any]:
    """Return inputs and targets of a batch."""
    if isinstance(batch, (list, tuple)) and len(batch) == 2:
        inputs, targets = batch
        return inputs, targets
    return unpack(batch)


class Result:
    """A metric with a known value."""

    def __init__(self, value: float) -> None:
        self._value = value

    def compute(self) -> torch.Tensor:
        return torch.tensor(self._value)


class EventsDestination(LoggerDestination):  # type: ignore[misc]
    """A destination that records the metrics of callbacks in the run's events."""

    def __init__(self, runner: BaseRunner) -> None:
        self._runner = weakref.ref(runner)

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        runner = self._runner()
        if runner is None:
            return
        numbers = {}
        for name, value in metrics.items():
            if isinstance(value, (int, float, torch.Tensor)):
                numbers[name] = float(value)
        runner.events.put_scalars(numbers, smoothing_hint=False, global_step=step)


def _count_samples(batch: Any) -> int:
    part = batch
    if isinstance(batch, (list, tuple)) and batch:
        part = batch[0]
    if isinstance(part, dict):
        part = next(iter(part.values()), None)
    return len(part) if isinstance(part, torch.Tensor) and part.ndim else 1


def _duration(runner: BaseRunner) -> str:
    """Return the length of the run in Composer's notation."""
    if runner.loop.iter_limit is None:
        return f"{runner.max_epochs}ep"
    return f"{count_optimizer_steps(runner, runner.loop.iter_limit)}ba"
