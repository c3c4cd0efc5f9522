"""An average of the weights, used for validation and testing and saved in checkpoints."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.model.wrappers import unwrap_model
from hookline.compat.mmengine.registry import HOOKS, MODELS

PREFIX = "module."


@HOOKS.register_module()
class EMAHook(Hook):
    """Keeps an average of the model and evaluates with it.

    As in MMEngine, the `state_dict` of a checkpoint holds the average, and `ema_state_dict` holds
    the weights for further training.

    Args:
        ema_type: The class of the average; further arguments are passed to it.
        strict_load: Raise an error if the average of a checkpoint does not fit.
        begin_iter: The first iteration with an average; the weights are copied before it.
        begin_epoch: The first epoch with an average.
    """

    priority = "NORMAL"
    engine_sites = ("on_exception",)

    def __init__(
        self,
        ema_type: str = "ExponentialMovingAverage",
        strict_load: bool = False,
        begin_iter: int = 0,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        if begin_iter != 0 and begin_epoch != 0:
            raise AssertionError("`begin_iter` and `begin_epoch` should not be both set.")
        if begin_iter < 0 or begin_epoch < 0:
            raise AssertionError(
                "`begin_iter` and `begin_epoch` must not be negative, got "
                f"{begin_iter} and {begin_epoch}"
            )
        self.strict_load = strict_load
        self.ema_cfg = {"type": ema_type, **kwargs}
        self.begin_iter = begin_iter
        self.begin_epoch = begin_epoch
        self.enabled_by_epoch = begin_epoch > 0
        self._swapped = False

    def before_run(self, runner: Any) -> None:
        self.src_model: nn.Module = unwrap_model(runner.model)
        self.ema_model = MODELS.build(self.ema_cfg, default_args={"model": self.src_model})
        self._swapped = False

    def before_train(self, runner: Any) -> None:
        if self.enabled_by_epoch:
            _check_begin("epoch", self.begin_epoch, runner.max_epochs)
        else:
            _check_begin("iter", self.begin_iter, runner.max_iters)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if self._ema_started(runner):
            self.ema_model.update_parameters(self.src_model)
            return
        source = self.src_model.state_dict()
        for key, value in self.ema_model.module.state_dict().items():
            value.data.copy_(source[key].data)

    def before_val_epoch(self, runner: Any) -> None:
        self._swap_ema_parameters()

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        self._swap_ema_parameters()

    before_test_epoch = before_val_epoch
    after_test_epoch = after_val_epoch

    def on_exception(self, runner: Any) -> None:
        if self._swapped:  # an evaluation failed, and the model still holds the average
            self._swap_ema_parameters()

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint["ema_state_dict"] = dict(self.ema_model.state_dict())
        _swap_states(checkpoint)

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        from hookline.compat.mmengine.runner.checkpoint import load_state_dict

        average = checkpoint.get("ema_state_dict")
        if average is not None and _has_hookline_layout(average):
            self.ema_model.module.load_state_dict(average, strict=self.strict_load)
            return
        if average is not None and runner._resume:
            _swap_states(checkpoint)
            self.ema_model.load_state_dict(checkpoint["ema_state_dict"], strict=self.strict_load)
            return
        if runner._resume:
            print_log(
                "There is no `ema_state_dict` in checkpoint. "
                "`EMAHook` starts with a copy of `state_dict`",
                "current",
                logging.WARNING,
            )
        weights = copy.deepcopy(checkpoint.get("state_dict", checkpoint))
        load_state_dict(self.ema_model.module, weights, strict=self.strict_load)

    def _ema_started(self, runner: Any) -> bool:
        if self.enabled_by_epoch:
            return bool(runner.epoch + 1 >= self.begin_epoch)
        return bool(runner.iter + 1 >= self.begin_iter)

    def _swap_ema_parameters(self) -> None:
        average = self.ema_model.module
        _exchange_all(average.parameters(), self.src_model.parameters())
        if getattr(self.ema_model, "update_buffers", False):
            _exchange_all(average.buffers(), self.src_model.buffers())
        self._swapped = not self._swapped


def _check_begin(unit: str, begin: int, end: int) -> None:
    if begin > end:
        raise AssertionError(
            f"begin_{unit} should be smaller than or equal to max_{unit}s: {end}, but got {begin}"
        )


def _has_hookline_layout(average: dict[str, Any]) -> bool:
    """Return whether `ema_state_dict` holds the average itself, without MMEngine's prefix."""
    return not any(key.startswith(PREFIX) for key in average)


def _exchange_all(ones: Iterable[Tensor], others: Iterable[Tensor]) -> None:
    for one, other in zip(ones, others, strict=True):
        _exchange(one, other)


def _exchange(one: Tensor, other: Tensor) -> None:
    if one.device == other.device:
        one.data, other.data = other.data, one.data
    else:
        former = one.data.clone()
        one.data.copy_(other.data)
        other.data.copy_(former)


def _swap_states(checkpoint: dict[str, Any]) -> None:
    """Exchange the weights in `state_dict` and those in `ema_state_dict`."""
    weights = dict(checkpoint["state_dict"])
    average = dict(checkpoint["ema_state_dict"])
    for key in average:
        name = key.removeprefix(PREFIX)
        if key.startswith(PREFIX) and name in weights:
            average[key], weights[name] = weights[name], average[key]
    checkpoint["state_dict"] = weights
    checkpoint["ema_state_dict"] = average
