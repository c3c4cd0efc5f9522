"""The hook around a callback of Keras: which of its methods is called at which site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from hookline.compat.foreign import AliasedMetrics, ChangedAttributes, ForeignHook
from hookline.compat.foreign.losses import RunningLoss
from hookline.compat.keras.model import Model
from hookline.engine import BaseRunner
from hookline.metrics.results import find_name

BATCH_END = ("on_train_batch_end", "on_batch_end")  # the first one calls the second
# `_model` and `params` are set for each run, and Keras changes the sign of `min_delta`.
NOT_STATE = ("_model", "params", "min_delta")


class Logs(AliasedMetrics):
    """The values of an epoch, with the results of its validation by any of their names.

    `loss` is always the training loss.
    """

    def find(self, name: str) -> str | None:
        """Return the key of a value; only results of a validation have several names."""
        if dict.__contains__(self, name):
            return name
        return find_name(name, [key for key in self if key.startswith("val_")])


class KerasHook(ForeignHook):
    """Drives a callback with a stand-in for `model`.

    `logs` hold the mean `loss` of the epoch so far, and after the epoch the results of its
    validation as `val_…`.
    """

    framework = "keras"
    distributions = ("keras",)
    expected = "an instance of keras.callbacks.Callback"
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
        self._loss = RunningLoss()
        self._changed = ChangedAttributes(callback, without=NOT_STATE)
        self._wants_batches = self.has_any(*BATCH_END)
        self._logs = Logs()
        self._metrics_at_start: Any = None  # the metrics at the beginning of the epoch

    def before_run(self, runner: BaseRunner) -> None:
        self.model.stop_training = False
        self.callback.set_params(
            {"verbose": 1, "epochs": runner.max_epochs or 1, "steps": runner.epoch_length}
        )
        self.callback.set_model(self.model)

    def before_train(self, runner: BaseRunner) -> None:
        self.callback.on_train_begin({})

    def before_train_epoch(self, runner: BaseRunner) -> None:
        # Some callbacks set their methods when the training begins.
        self._wants_batches = self.has_any(*BATCH_END)
        self._metrics_at_start = runner.metrics
        if runner.inner_iter == 0:  # not resumed in the middle of the epoch
            self._loss.reset()
        self.callback.on_epoch_begin(runner.epoch, {})

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.callback.on_train_batch_begin(runner.batch_idx, {})

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self._wants_batches:
            loss = self._loss.add_and_compute(runner.outputs)
            self.callback.on_train_batch_end(runner.batch_idx, {"loss": loss})
        else:
            self._loss.add(runner.outputs)

    def after_epoch(self, runner: BaseRunner) -> None:
        self._logs = Logs({"loss": self._loss.compute()})
        was_validated = runner.metrics is not self._metrics_at_start
        if was_validated:
            for name, value in runner.metrics.items():
                self._logs[f"val_{name.removeprefix('val_')}"] = value
        self.callback.on_epoch_end(runner.epoch, Logs(self._logs))

    def before_val(self, runner: BaseRunner) -> None:
        self.callback.on_test_begin({})

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.callback.on_test_batch_begin(runner.batch_idx, {})

    def after_val_iter(self, runner: BaseRunner) -> None:
        self.callback.on_test_batch_end(runner.batch_idx, {"loss": float(runner.outputs["loss"])})

    def after_val(self, runner: BaseRunner) -> None:
        results = AliasedMetrics()
        for name, value in runner.metrics.items():
            results[name.removeprefix("val_")] = value
        self.callback.on_test_end(results)

    before_test = before_val
    before_test_iter = before_val_iter
    after_test_iter = after_val_iter
    after_test = after_val

    def after_train(self, runner: BaseRunner) -> None:
        self.callback.on_train_end(Logs(self._logs))
        self.settle_files(runner)

    def state_dict(self) -> dict[str, Any]:
        attributes = self._changed.collect()
        if not attributes and not self._loss.has_losses:
            return {}
        return {"attributes": attributes, "loss": self._loss.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._changed.restore(state["attributes"])
        self._loss.load(state["loss"])
