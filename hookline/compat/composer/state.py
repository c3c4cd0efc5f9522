"""Composer's State and Logger, kept up to date with a run."""

from __future__ import annotations

import copy
import time
import weakref
from datetime import timedelta
from typing import Any

import torch
from composer.core import State, Timestamp
from composer.devices import DeviceCPU, DeviceGPU
from composer.loggers import Logger, LoggerDestination
from composer.models import ComposerModel

from hookline.compat.foreign.facade import missing
from hookline.compat.foreign.module import Mode, share_parts
from hookline.engine import BaseRunner
from hookline.engine.metrics import find_name
from hookline.engine.step import unpack
from hookline.errors import HooklineError
from hookline.hooks import GradientCumulativeOptimizerHook
from hookline.optim.schedulers import each_scheduler

_of_runner: weakref.WeakKeyDictionary[BaseRunner, RunState] = weakref.WeakKeyDictionary()

DATA = ("_dataloader", "_dataloader_label", "_dataloader_len")  # what State.set_dataloader sets


class RunState(State):  # type: ignore[misc]
    """A real State. Its clock is read from the run when someone looks; a batch is what makes an optimizer step."""

    stands_for = "state"

    def __init__(self, runner: BaseRunner) -> None:
        self.__dict__["_runner"] = weakref.ref(runner)
        self.__dict__["_began"] = time.monotonic()
        self.steps_at_epoch, self.together = 0, _together(runner)
        self._size = 0  # samples of a batch
        optimizer = runner.optimizer
        super().__init__(
            model=Model(runner),
            rank_zero_seed=runner.seed or 0,
            run_name=runner.work_dir.name or "run",
            device=DeviceGPU() if runner.device.type == "cuda" else DeviceCPU(),
            max_duration=f"{runner.max_epochs}ep" if runner.iter_limit is None else f"{_steps(runner, runner.iter_limit)}ba",
            train_dataloader=runner.train_loader,
            optimizers=list(optimizer.values()) if isinstance(optimizer, dict) else optimizer,
        )
        self.schedulers = list(each_scheduler(runner.scheduler))
        self.logger = Logger(self, [Events(runner)])
        self.begin()

    @classmethod
    def of(cls, runner: BaseRunner) -> RunState:
        if runner not in _of_runner:
            _of_runner[runner] = cls(runner)
        return _of_runner[runner]

    @property
    def timestamp(self) -> Timestamp:
        runner = self._runner()
        over = self._epoch_over()
        return self._moment(runner.epoch + over, runner.optimizer_steps, 0 if over else runner.optimizer_steps - self.steps_at_epoch)

    @timestamp.setter
    def timestamp(self, value: Timestamp) -> None:
        """The run's own clock is the only one."""

    @property
    def previous_timestamp(self) -> Timestamp | None:
        """Before the last step, or, when an epoch is over, before it was counted."""
        runner = self._runner()
        steps, inside = runner.optimizer_steps, runner.optimizer_steps - self.steps_at_epoch
        if not steps:
            return None
        return (
            self._moment(runner.epoch, steps, inside) if self._epoch_over() else self._moment(runner.epoch, steps - 1, max(inside - 1, 0))
        )

    @previous_timestamp.setter
    def previous_timestamp(self, value: Timestamp | None) -> None:
        """As above."""

    def _epoch_over(self) -> bool:
        """Whether the epoch's last batch is done and the epoch not counted yet."""
        runner = self._runner()
        return runner.epoch_length is not None and runner.inner_iter >= runner.epoch_length

    def _moment(self, epoch: int, batch: int, batch_in_epoch: int) -> Timestamp:
        if self.__dict__.get("_dataloader_label") == "train":  # a batch of an evaluation may be larger, and an epoch's last one smaller
            self._size = max(self._size, _samples(self._runner().batch) * self.together)
        return Timestamp(
            epoch=epoch,
            batch=batch,
            sample=batch * self._size,
            batch_in_epoch=batch_in_epoch,
            sample_in_epoch=batch_in_epoch * self._size,
            total_wct=timedelta(seconds=time.monotonic() - self._began),
            epoch_wct=timedelta(0),
            batch_wct=timedelta(0),
        )

    def stop_training(self) -> None:
        self._runner().request_stop(f"{self._hook.name} asked to stop")

    def check(self, hook: Any) -> None:
        """Refuse an algorithm that has replaced what a run cannot replace."""
        optimizer = self._runner().optimizer
        if self.model.__dict__.get("source") is not self._runner().model:
            raise HooklineError(f"{hook.name} puts another model in the place of the run's, which a run here does not do")
        if isinstance(optimizer, torch.optim.Optimizer) and (len(self.optimizers) != 1 or self.optimizers[0] is not optimizer):
            raise HooklineError(f"{hook.name} puts another optimizer in the place of the run's, which a run here does not do")

    def begin(self) -> None:
        """A run begins: note how long it and its epochs are, once, for asking costs more than an idle callback may."""
        runner = self._runner()
        self.together = _together(runner)
        length = -1 if runner.epoch_length is None else -(-runner.epoch_length // self.together)
        self.set_dataloader(runner.val_loader, "eval")
        self._to_evaluate: dict[str, Any] = {name: self.__dict__[name] for name in DATA}
        self.set_dataloader(runner.train_loader, "train", length)
        self._to_train: dict[str, Any] = {name: self.__dict__[name] for name in DATA}

    def train_on(self) -> None:
        """Training goes on."""
        self.__dict__.update(self._to_train)

    def evaluate_on(self) -> None:
        """An evaluation begins."""
        self.__dict__.update(self._to_evaluate)

    def __getattr__(self, name: str) -> Any:
        raise missing(self, name)


class Model(ComposerModel):  # type: ignore[misc]
    """The run's model as Composer's algorithms expect it: with a `loss` of outputs and a batch."""

    stands_for = "state.model"
    training = Mode()

    def __init__(self, runner: BaseRunner, source: torch.nn.Module | None = None) -> None:
        super().__init__()
        share_parts(self, source or runner.model)
        self.__dict__["_runner"] = weakref.ref(runner)

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return Model(self._runner(), copy.deepcopy(self.source, memo))

    def forward(self, batch: Any) -> Any:
        return self.source(targets_and_inputs(batch)[1])

    def loss(self, outputs: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        runner = self._runner()
        if runner is None or runner.loss_fn is None:
            raise HooklineError("a callback or algorithm of Composer wants to compute the loss, and the run has no loss_fn: pass loss_fn=…")
        return runner.loss_fn(outputs, targets_and_inputs(batch)[0], **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            source = self.__dict__.get("source")
            if source is not None and hasattr(source, name):
                return getattr(source, name)
            if "_runner" in self.__dict__:  # whose callback asks is known to the state
                self.__dict__["_hook"] = RunState.of(self._runner()).__dict__.get("_hook")
            raise missing(self, name) from None


def targets_and_inputs(batch: Any) -> tuple[Any, Any]:
    inputs, targets = batch if isinstance(batch, (list, tuple)) and len(batch) == 2 else unpack(batch)
    return targets, inputs


class Result:
    """A metric that was computed already."""

    def __init__(self, value: float) -> None:
        self._value = value

    def compute(self) -> torch.Tensor:
        return torch.tensor(self._value)


class Results(dict[str, Result]):
    """Results by any of a metric's names (`accuracy`, `val_acc`, …)."""

    def __missing__(self, name: str) -> Result:
        found = find_name(name, self.keys())
        if found is None:
            raise KeyError(name)
        return self[found]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_name(name, self.keys()) is not None


class Events(LoggerDestination):  # type: ignore[misc]
    """Records what callbacks log in the run's events, from where our writers take it."""

    def __init__(self, runner: BaseRunner) -> None:
        self._runner = weakref.ref(runner)

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        runner = self._runner()
        if runner is not None:
            numbers = {name: float(value) for name, value in metrics.items() if isinstance(value, (int, float, torch.Tensor))}
            runner.events.put_scalars(numbers, smoothing_hint=False)


def _samples(batch: Any) -> int:
    part = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
    if isinstance(part, dict):
        part = next(iter(part.values()), None)
    return len(part) if isinstance(part, torch.Tensor) and part.ndim else 1


def _together(runner: BaseRunner) -> int:
    """How many iterations make an optimizer step."""
    return next((hook.cumulative_iters for hook in runner.hooks if isinstance(hook, GradientCumulativeOptimizerHook)), 1)


def _steps(runner: BaseRunner, iters: int) -> int:
    """How many optimizer steps so many iterations make; an epoch, and the run, ends with a step."""
    together, length = _together(runner), runner.epoch_length or iters
    return iters // length * -(-length // together) + -(-(iters % length) // together)
