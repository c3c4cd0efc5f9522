"""The logged metrics and the loggers that all of Lightning's callbacks in a run share."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hookline.batches import count_targets
from hookline.compat.foreign import AliasedMetrics
from hookline.compat.lightning.classes import Classes
from hookline.engine import BaseRunner
from hookline.engine.loop import IN_ITERATION
from hookline.errors import HooklineError, Suggestion

if TYPE_CHECKING:
    from hookline.compat.lightning.trainer import Trainer

REDUCTIONS: dict[str, Callable[[float, float], float]] = {
    "mean": operator.add,
    "sum": operator.add,
    "min": min,
    "max": max,
}

_shared_states: weakref.WeakKeyDictionary[BaseRunner, SharedState] = weakref.WeakKeyDictionary()


class SharedState:
    """The logged metrics, the loggers, and whether a callback requested to stop."""

    def __init__(self, runner: BaseRunner, classes: Classes) -> None:
        self._runner = weakref.ref(runner)
        self.logged: dict[str, torch.Tensor] = {}
        self.shown: dict[str, float] = {}  # in progress bars
        self.should_stop = False
        self.loggers = [make_logger(classes.logger, runner)]
        self._epoch_values: dict[str, EpochValue] = {}

    @classmethod
    def for_runner(cls, runner: BaseRunner, classes: Classes) -> SharedState:
        """Return the state of a runner; the first call makes it."""
        if runner not in _shared_states:
            _shared_states[runner] = cls(runner, classes)
        return _shared_states[runner]

    def log(
        self, name: str, step: float | None, epoch: float | None = None, prog_bar: bool = False
    ) -> None:
        """Record a value that was logged: that of the step, of the epoch so far, or both."""
        values = {}
        if epoch is not None:
            values[name] = epoch
        if step is not None and epoch is not None:
            values[f"{name}_step"] = step
            values[f"{name}_epoch"] = epoch
        elif step is not None:
            values[name] = step
        runner = self._runner()
        in_iteration = runner is not None and runner.loop.phase in IN_ITERATION
        for key, number in values.items():
            self.logged[key] = torch.tensor(number)
            if prog_bar:
                self.shown[key] = number
            if runner is not None and in_iteration:
                runner.events.put_iteration_scalar(key, number, smoothed=epoch is None)
            elif runner is not None:
                runner.events.put_scalar(key, number, smoothing_hint=epoch is None)

    def reduce(
        self, name: str, number: float, reduce_fx: Any, trainer: Trainer, batch_size: int | None
    ) -> float:
        """Add the value of a batch; return that of the epoch, or of the evaluation, so far."""
        kind = getattr(reduce_fx, "__name__", reduce_fx)
        if kind not in REDUCTIONS:
            raise HooklineError(
                f"cannot log {name!r} with this reduction",
                component=trainer._hook.name,
                parameter="reduce_fx",
                value=kind,
                suggestion=Suggestion(known=tuple(REDUCTIONS)),
            )
        runner = trainer._runner
        period = (trainer.state.stage, runner.epoch, runner.iter if trainer.evaluating else 0)
        epoch_value = self._epoch_values.get(name)
        if epoch_value is None or epoch_value.period != period:
            epoch_value = EpochValue(period, kind)
            self._epoch_values[name] = epoch_value
        samples = batch_size or count_targets(runner.outputs.get("targets")) or 1
        return epoch_value.add(number, samples)

    def metrics(self, runner: BaseRunner) -> CallbackMetrics:
        """Return `trainer.callback_metrics`.

        They are the last training loss, the results of the last validation and the logged values.
        """
        values: dict[str, Any] = {}
        loss = runner.outputs.get("loss") if isinstance(runner.outputs, dict) else None
        if isinstance(loss, torch.Tensor):
            values["train_loss"] = loss.detach()
        for name, value in {**runner.metrics, **self.logged}.items():
            values[name] = value if isinstance(value, torch.Tensor) else torch.tensor(value)
        return CallbackMetrics(values, self.logged)


@dataclass
class EpochValue:
    """A logged value, reduced over the batches of an epoch or of an evaluation."""

    period: tuple[Any, ...]
    kind: str
    total: float | None = None
    samples: int = 0

    def add(self, number: float, samples: int) -> float:
        """Add the value of a batch and return the reduced value; a mean is weighted by samples."""
        if self.kind == "mean":
            number *= samples
        self.samples += samples
        if self.total is None:
            self.total = number
        else:
            self.total = REDUCTIONS[self.kind](self.total, number)
        return self.total / self.samples if self.kind == "mean" else self.total


class CallbackMetrics(AliasedMetrics):
    """Metrics by any of their names. A value that a callback sets is visible to the others.

    Args:
        values: The metrics.
        logged: The logged values of the run, to which assignments are added.
    """

    logged: dict[str, Any] | None = None

    def __init__(
        self, values: Mapping[str, Any] | None = None, logged: dict[str, Any] | None = None
    ) -> None:
        super().__init__(values or {})
        self.logged = logged

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        if self.logged is not None:
            self.logged[name] = value

    def update(self, *values: Any, **more: Any) -> None:
        for name, value in dict(*values, **more).items():
            self[name] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> CallbackMetrics:
        values = {}
        for name, value in self.items():
            values[name] = value.clone() if isinstance(value, torch.Tensor) else value
        return CallbackMetrics(values)


def make_logger(base: Any, runner: BaseRunner) -> Any:
    """Return a logger of Lightning's class that records into the run's events."""
    get_runner = weakref.ref(runner)

    class EventsLogger(base):  # type: ignore[misc]
        name = ""
        version = ""

        @property
        def save_dir(self) -> str:
            found = get_runner()
            return "" if found is None else str(found.work_dir)

        log_dir = save_dir
        root_dir = save_dir

        @property
        def experiment(self) -> Any:
            found = get_runner()
            return None if found is None else found.events

        def log_metrics(self, metrics: Any, step: int | None = None) -> None:
            found = get_runner()
            if found is not None:
                numbers = {name: float(value) for name, value in metrics.items()}
                found.events.put_scalars(numbers, smoothing_hint=False, global_step=step)

        def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
            """Do nothing: the run's config is in its folder and in its checkpoints."""

    return EventsLogger()
