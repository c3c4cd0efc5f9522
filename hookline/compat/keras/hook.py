"""The hook around a callback of Keras: which of its methods is called at which site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from hookline.compat.foreign import ChangedAttributes, ForeignHook
from hookline.compat.foreign.losses import MeanLoss
from hookline.compat.keras.model import Model
from hookline.engine import BaseRunner, Metrics
from hookline.engine.metrics import find_name

BATCH_END = ("on_train_batch_end", "on_batch_end")  # the second is what the first calls


class Logs(dict[str, float]):
    """What is told of an epoch, with the results of its validation by any of their names; `loss` is always that of the training."""

    def __missing__(self, name: str) -> float:
        found = self._find(name)
        if found is None:
            raise KeyError(name)
        return self[found]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        found = self._find(name)
        return default if found is None else self[found]

    def _find(self, name: str) -> str | None:
        return name if super().__contains__(name) else find_name(name, (key for key in self if key.startswith("val_")))


class KerasHook(ForeignHook):
    """Drives a callback with a stand-in for `model`. `logs` have the mean `loss` of the epoch so far, and after it the results
    of its validation as `val_…`.
    """

    framework = "keras"
    distributions = ("keras",)
    base = keras.callbacks.Callback
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "before_train": ("on_train_begin",),
        "before_train_epoch": ("on_epoch_begin", *BATCH_END, "on_epoch_end"),
        "before_train_iter": ("on_train_batch_begin", "on_batch_begin"),
        "after_train_iter": (*BATCH_END, "on_epoch_end"),
        "after_epoch": ("on_epoch_end",),
        "before_val": ("on_test_begin",),
        "before_val_iter": ("on_test_batch_begin",),
        "after_val_iter": ("on_test_batch_end",),
        "after_val": ("on_test_end",),
        "before_test": ("on_test_begin",),
        "before_test_iter": ("on_test_batch_begin",),
        "after_test_iter": ("on_test_batch_end",),
        "after_test": ("on_test_end",),
    }

    def __init__(self, callback: Any) -> None:
        super().__init__(callback)
        self.model = Model(self)
        self._loss = MeanLoss()
        self._changed = ChangedAttributes(callback, without=("_model", "params", "min_delta"))  # Keras turns the sign of min_delta
        self._wants_batches = any(self.has(method) for method in BATCH_END)
        self._logs = Logs()
        self._metrics: Any = None  # as they were when the epoch began

    def before_run(self, runner: BaseRunner) -> None:
        self.model.stop_training = False
        self.callback.set_params({"verbose": 1, "epochs": runner.max_epochs or 1, "steps": runner.epoch_length})
        self.callback.set_model(self.model)

    def before_train(self, runner: BaseRunner) -> None:
        self.callback.on_train_begin({})

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._wants_batches = any(self.has(method) for method in BATCH_END)  # some set their methods when the training begins
        self._metrics = runner.metrics
        if runner.inner_iter == 0:  # else the run was resumed in the middle of the epoch
            self._loss.reset()
        self.callback.on_epoch_begin(runner.epoch, {})

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.callback.on_train_batch_begin(runner.batch_idx, {})

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self._wants_batches:
            self.callback.on_train_batch_end(runner.batch_idx, {"loss": self._loss.add_and_tell(runner.outputs)})
        else:
            self._loss.add(runner.outputs)

    def after_epoch(self, runner: BaseRunner) -> None:
        measured = {} if runner.metrics is self._metrics else runner.metrics  # validated in this epoch, or not
        results = {name if name.startswith("val_") else f"val_{name}": value for name, value in measured.items()}
        self._logs = Logs({"loss": self._loss.value(), **results})
        self.callback.on_epoch_end(runner.epoch, Logs(self._logs))

    def before_val(self, runner: BaseRunner) -> None:
        self.callback.on_test_begin({})

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.callback.on_test_batch_begin(runner.batch_idx, {})

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.callback.on_test_batch_end(runner.batch_idx, {"loss": float(runner.outputs["loss"])})

    def after_val(self, runner: BaseRunner) -> None:
        self.callback.on_test_end(Metrics({name.removeprefix("val_"): value for name, value in runner.metrics.items()}))

    before_test, before_test_iter, after_test_iter, after_test = before_val, before_val_iter, after_val_iter, after_val

    def after_train(self, runner: BaseRunner) -> None:
        self.callback.on_train_end(Logs(self._logs))
        self.settle_files(runner)

    def state_dict(self) -> dict[str, Any]:
        kept = {"attributes": self._changed.collect(lambda name: None), "loss": self._loss.state()}  # files and bars are made anew
        return kept if kept["attributes"] or self._loss.started else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._changed.restore(state["attributes"])
        self._loss.load(state["loss"])
