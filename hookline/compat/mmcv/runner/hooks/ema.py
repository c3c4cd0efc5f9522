"""An average of the weights, kept in buffers of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hookline.compat.mmcv.parallel import is_module_wrapper
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class EMAHook(Hook):
    """Keep `ema = (1 - momentum) * ema + momentum * weights` in the model's buffers `ema_<name>`.

    Between the end of a training epoch and the next one the model holds the average and the buffers the weights, so that
    evaluation and the checkpoints of epochs have it. `resume_from` is a checkpoint to resume from once the buffers are there;
    `runner.resume` does as well.
    """

    def __init__(self, momentum: float = 0.0002, interval: int = 1, warm_up: int = 100, resume_from: str | None = None) -> None:
        if not isinstance(interval, int) or interval < 1:
            raise ValueError(f"EMAHook: interval must be a whole number of at least 1, got {interval!r}")
        if not 0 < momentum < 1:
            raise ValueError(f"EMAHook: momentum is the share of the new weights, above 0 and below 1, got {momentum}")
        self.warm_up, self.interval, self.momentum = warm_up, interval, momentum**interval
        self.checkpoint = resume_from
        self.swapped = True  # as in the checkpoint of an epoch; at the start both are the same

    def before_run(self, runner: Any) -> None:
        model = runner.model.module if is_module_wrapper(runner.model) else runner.model
        self.model_parameters = dict(model.named_parameters(recurse=True))
        self.param_ema_buffer = {name: f"ema_{name.replace('.', '_')}" for name in self.model_parameters}
        for name, value in self.model_parameters.items():
            model.register_buffer(self.param_ema_buffer[name], value.data.clone())
        self.model_buffers = dict(model.named_buffers(recurse=True))
        if self.checkpoint is not None:
            runner.resume(self.checkpoint)

    def after_train_iter(self, runner: Any) -> None:
        if runner.iter % self.interval:
            return
        momentum = min(self.momentum, (1 + runner.iter) / (self.warm_up + runner.iter))
        averages, weights = self._pairs()
        torch._foreach_lerp_(averages, weights, momentum)

    def after_train_epoch(self, runner: Any) -> None:
        self._swap_ema_parameters()
        self.swapped = True

    def before_train_epoch(self, runner: Any) -> None:
        if self.swapped:
            self._swap_ema_parameters()
            self.swapped = False

    def state_dict(self) -> dict[str, Any]:
        return {"swapped": self.swapped}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.swapped = bool(state["swapped"])

    def _swap_ema_parameters(self) -> None:
        """Exchange the weights and the average."""
        averages, weights = self._pairs()
        kept = [weight.clone() for weight in weights]
        torch._foreach_copy_(weights, averages)
        torch._foreach_copy_(averages, kept)

    def _pairs(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        averages = [self.model_buffers[self.param_ema_buffer[name]] for name in self.model_parameters]
        return averages, [parameter.data for parameter in self.model_parameters.values()]
