"""An average of the weights for validation, testing and use."""

from __future__ import annotations

import copy
import logging
from itertools import chain
from typing import Any

from torch import Tensor, nn

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.model import is_model_wrapper
from hookline.compat.mmengine.registry import HOOKS, MODELS

PREFIX = "module."


@HOOKS.register_module()
class EMAHook(Hook):
    """Keep an average of the model (`ema_type`, with its parameters) and evaluate with it.

    As in MMEngine a checkpoint's `state_dict` holds the average, and `ema_state_dict` the weights that training goes on with.
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
            raise AssertionError(f"`begin_iter` and `begin_epoch` must not be negative, got {begin_iter} and {begin_epoch}")
        self.strict_load, self.ema_cfg = strict_load, {"type": ema_type, **kwargs}
        self.begin_iter, self.begin_epoch = begin_iter, begin_epoch
        self.enabled_by_epoch = begin_epoch > 0
        self._swapped = False

    def before_run(self, runner: Any) -> None:
        self.src_model: nn.Module = runner.model.module if is_model_wrapper(runner.model) else runner.model
        self.ema_model = MODELS.build(self.ema_cfg, default_args={"model": self.src_model})
        self._swapped = False

    def before_train(self, runner: Any) -> None:
        begin, end = (self.begin_epoch, runner.max_epochs) if self.enabled_by_epoch else (self.begin_iter, runner.max_iters)
        if begin > end:
            unit = "epoch" if self.enabled_by_epoch else "iter"
            raise AssertionError(f"begin_{unit} should be smaller than or equal to max_{unit}s: {end}, but got {begin}")

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
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
        if self._swapped:  # an evaluation failed: the model gets its own weights back
            self._swap_ema_parameters()

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:  # type: ignore[override]
        checkpoint["ema_state_dict"] = dict(self.ema_model.state_dict())
        _swap_states(checkpoint)

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:  # type: ignore[override]
        from hookline.compat.mmengine.runner.checkpoint import load_state_dict

        average = checkpoint.get("ema_state_dict")
        if average is not None and not any(key.startswith(PREFIX) for key in average):  # Hookline's layout: the average itself
            self.ema_model.module.load_state_dict(average, strict=self.strict_load)
        elif average is not None and runner._resume:
            _swap_states(checkpoint)
            self.ema_model.load_state_dict(checkpoint["ema_state_dict"], strict=self.strict_load)
        else:
            if runner._resume:
                text = "There is no `ema_state_dict` in checkpoint. `EMAHook` starts with a copy of `state_dict`"
                print_log(text, "current", logging.WARNING)
            load_state_dict(self.ema_model.module, copy.deepcopy(checkpoint.get("state_dict", checkpoint)), strict=self.strict_load)

    def _ema_started(self, runner: Any) -> bool:
        return bool(runner.epoch + 1 >= self.begin_epoch if self.enabled_by_epoch else runner.iter + 1 >= self.begin_iter)

    def _swap_ema_parameters(self) -> None:
        with_buffers = getattr(self.ema_model, "update_buffers", False)
        mine, theirs = (
            chain(model.parameters(), model.buffers() if with_buffers else ()) for model in (self.ema_model.module, self.src_model)
        )
        for average, source in zip(mine, theirs, strict=True):
            _exchange(average, source)
        self._swapped = not self._swapped


def _exchange(one: Tensor, other: Tensor) -> None:
    if one.device == other.device:
        one.data, other.data = other.data, one.data
    else:
        former = one.data.clone()
        one.data.copy_(other.data)
        other.data.copy_(former)


def _swap_states(checkpoint: dict[str, Any]) -> None:
    """Put the average into `state_dict` and the weights into `ema_state_dict`, or back."""
    weights, average = dict(checkpoint["state_dict"]), dict(checkpoint["ema_state_dict"])
    for key in average:
        name = key.removeprefix(PREFIX)
        if key.startswith(PREFIX) and name in weights:
            average[key], weights[name] = weights[name], average[key]
    checkpoint["state_dict"], checkpoint["ema_state_dict"] = weights, average
