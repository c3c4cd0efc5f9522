"""What all of Lightning's callbacks of one run share: the logged metrics and the loggers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from hookline.compat.lightning.names import Names
from hookline.engine import BaseRunner
from hookline.engine.metrics import find_name
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.compat.lightning.trainer import Trainer

_of_runner: weakref.WeakKeyDictionary[BaseRunner, Shared] = weakref.WeakKeyDictionary()


class Shared:
    """Logged metrics, schedulers that callbacks added, and whether one of them asked to stop."""

    def __init__(self, runner: BaseRunner, names: Names) -> None:
        self._runner = weakref.ref(runner)
        self.logged: dict[str, torch.Tensor] = {}
        self.shown: dict[str, float] = {}  # in progress bars
        self.should_stop = False
        self._epochs: dict[str, tuple[Any, float, int]] = {}  # which epoch, what was added up in it, and of how many samples
        self.loggers = [make_logger(names.logger, runner)]

    @classmethod
    def of(cls, runner: BaseRunner, names: Names) -> Shared:
        if runner not in _of_runner:
            _of_runner[runner] = cls(runner, names)
        return _of_runner[runner]

    def log(self, name: str, step: float | None, epoch: float | None = None, prog_bar: bool = False) -> None:
        """Note what `self.log(…)` of a LightningModule was given: the value of a step, that of the epoch so far, or both."""
        runner, values = self._runner(), {} if epoch is None else {name: epoch}
        if step is not None:
            values |= {name: step} if epoch is None else {f"{name}_step": step, f"{name}_epoch": epoch}
        for each, number in values.items():
            self.logged[each] = torch.tensor(number)
            if prog_bar:
                self.shown[each] = number
            if runner is not None:
                runner.events.put_scalar(each, number, smoothing_hint=epoch is None)

    def so_far(self, name: str, number: float, reduce_fx: Any, trainer: Trainer, batch_size: int | None) -> float:
        """The value of the epoch, or of the evaluation, so far: the mean over samples, or another reduction."""
        kind = getattr(reduce_fx, "__name__", reduce_fx)
        if kind not in ("mean", "sum", "min", "max"):
            raise HooklineError(
                f"{trainer._hook.name} logs {name!r} with reduce_fx={kind!r}; here there are 'mean', 'sum', 'min' and 'max'"
            )
        runner = trainer._runner
        moment = (trainer.state.stage, runner.epoch, runner.iter if trainer.evaluating else 0)
        weight = batch_size or _count(runner.outputs.get("targets"))
        before, total, weights = self._epochs.get(name, (None, 0.0, 0))
        if before != moment:
            total, weights = (number * weight if kind == "mean" else number), weight
        elif kind == "mean":
            total, weights = total + number * weight, weights + weight
        else:
            total = total + number if kind == "sum" else min(total, number) if kind == "min" else max(total, number)
        self._epochs[name] = moment, total, weights
        return total / weights if kind == "mean" else total

    def metrics(self, runner: BaseRunner) -> CallbackMetrics:
        """`trainer.callback_metrics`: the last training loss, the results of the last validation, and what was logged."""
        found = CallbackMetrics()
        loss = runner.outputs.get("loss") if isinstance(runner.outputs, dict) else None
        if isinstance(loss, torch.Tensor):
            dict.__setitem__(found, "train_loss", loss.detach())
        for name, value in {**runner.metrics, **self.logged}.items():
            dict.__setitem__(found, name, value if isinstance(value, torch.Tensor) else torch.tensor(value))
        found.logged = self.logged
        return found


class CallbackMetrics(dict[str, Any]):
    """Metrics by any of their names (`accuracy`, `val_acc`, …); what a callback puts in stays for the others."""

    logged: dict[str, Any]

    def __missing__(self, name: str) -> Any:
        found = find_name(name, self)
        if found is None:
            raise KeyError(name)
        return self[found]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_name(name, self.keys()) is not None

    def get(self, name: str, default: Any = None) -> Any:
        found = find_name(name, self.keys())
        return default if found is None else self[found]

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self.__dict__.get("logged", {})[name] = value

    def update(self, *values: Any, **more: Any) -> None:
        for name, value in dict(*values, **more).items():
            self[name] = value

    def __deepcopy__(self, memo: dict[int, Any]) -> CallbackMetrics:
        copied = CallbackMetrics()
        for name, value in self.items():
            dict.__setitem__(copied, name, value.clone() if isinstance(value, torch.Tensor) else value)
        return copied


def make_logger(base: Any, runner: BaseRunner) -> Any:
    """A logger of Lightning's kind that records into the run's events, from where our writers take it."""
    get_runner = weakref.ref(runner)

    class EventsLogger(base):  # type: ignore[misc]
        name = ""
        version = ""

        @property
        def save_dir(self) -> str:
            found = get_runner()
            return "" if found is None else str(found.work_dir)

        log_dir = root_dir = save_dir

        @property
        def experiment(self) -> Any:
            found = get_runner()
            return None if found is None else found.events

        def log_metrics(self, metrics: Any, step: int | None = None) -> None:
            found = get_runner()
            if found is not None:
                found.events.put_scalars({name: float(value) for name, value in metrics.items()}, smoothing_hint=False)

        def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
            """The run's own config is in its folder and its checkpoints already."""

    return EventsLogger()


def _count(targets: Any) -> int:
    try:
        return len(targets) or 1
    except TypeError:
        return 1
