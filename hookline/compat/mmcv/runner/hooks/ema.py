"""A moving average of the weights, kept in buffers of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hookline.compat.mmcv.errors import require
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.mmcv.runner.model_wrapper import unwrap


@HOOKS.register_module()
class EMAHook(Hook):
    """Keeps `ema = (1 - momentum) * ema + momentum * weights` in the buffers `ema_<name>`.

    Between two training epochs the model holds the average and the buffers hold the weights, so
    that the evaluation and the checkpoint of an epoch use the average.

    Args:
        momentum: The share of the new weights.
        interval: The number of iterations between two updates.
        warm_up: At iteration i the share is at most `(1 + i) / (warm_up + i)`.
        resume_from: A checkpoint to resume from once the buffers exist, with `runner.resume`.
    """

    reads_checkpoints = False

    def __init__(
        self,
        momentum: float = 0.0002,
        interval: int = 1,
        warm_up: int = 100,
        resume_from: str | None = None,
    ) -> None:
        is_valid = isinstance(interval, int) and interval > 0
        require(is_valid, self, "interval", "must be a whole number of at least 1", interval)
        require(0 < momentum < 1, self, "momentum", "must lie between 0 and 1", momentum)
        self.warm_up = warm_up
        self.interval = interval
        self.momentum = momentum**interval
        self.checkpoint = resume_from
        # True as in the checkpoint of an epoch; at the start the weights and the average are equal.
        self.swapped = True

    def before_run(self, runner: Any) -> None:
        model = unwrap(runner.model)
        self.model_parameters = dict(model.named_parameters(recurse=True))
        self.param_ema_buffer = {}
        for name, value in self.model_parameters.items():
            buffer = f"ema_{name.replace('.', '_')}"
            self.param_ema_buffer[name] = buffer
            model.register_buffer(buffer, value.data.clone())
        self.model_buffers = dict(model.named_buffers(recurse=True))
        if self.checkpoint is not None:
            runner.resume(self.checkpoint)

    def after_train_iter(self, runner: Any) -> None:
        if runner.iter % self.interval:
            return
        momentum = min(self.momentum, (1 + runner.iter) / (self.warm_up + runner.iter))
        averages, weights = self._pairs()
        # As MMCV computes it; `lerp` rounds differently.
        torch._foreach_mul_(averages, 1 - momentum)
        torch._foreach_add_(averages, weights, alpha=momentum)

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
        copies = [weight.clone() for weight in weights]
        torch._foreach_copy_(weights, averages)
        torch._foreach_copy_(averages, copies)

    def _pairs(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        averages = []
        weights = []
        for name, parameter in self.model_parameters.items():
            averages.append(self.model_buffers[self.param_ema_buffer[name]])
            weights.append(parameter.data)
        return averages, weights
