"""Averages of a model's weights, as modules of their own."""

from __future__ import annotations

import logging
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.registry import MODELS


class BaseAveragedModel(nn.Module):
    """A copy of a model, moved towards it by `avg_func` at every `interval`th call of `update_parameters`."""

    def __init__(self, model: nn.Module, interval: int = 1, device: Any = None, update_buffers: bool = False) -> None:
        super().__init__()
        self.module = deepcopy(model).requires_grad_(False)
        if device is not None:
            self.module = self.module.to(device)
        self.interval, self.update_buffers = interval, update_buffers
        self.register_buffer("steps", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_parameters: dict[str, Tensor] = dict(self.module.state_dict() if update_buffers else self.module.named_parameters())

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must implement avg_func(averaged_param, source_param, steps)")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        source = dict(model.state_dict() if self.update_buffers else model.named_parameters())
        steps: Any = self.steps
        if steps == 0:
            for name, average in self.avg_parameters.items():
                average.data.copy_(source[name].data)
        elif steps % self.interval == 0:
            for name, average in self.avg_parameters.items():
                if average.dtype.is_floating_point:
                    self.avg_func(average.data, source[name].data.to(average.device), steps)
        if not self.update_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.data.copy_(theirs.data)
        steps += 1


@MODELS.register_module()
class StochasticWeightAverage(BaseAveragedModel):
    """All weights count the same."""

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        averaged_param.add_(source_param - averaged_param, alpha=1 / float(steps // self.interval + 1))


@MODELS.register_module()
class ExponentialMovingAverage(BaseAveragedModel):
    """`average = (1 - momentum) * average + momentum * weights`."""

    def __init__(
        self, model: nn.Module, momentum: float = 0.0002, interval: int = 1, device: Any = None, update_buffers: bool = False
    ) -> None:
        super().__init__(model, interval, device, update_buffers)
        if not 0.0 < momentum < 1.0:
            raise AssertionError(f"momentum must be in range (0.0, 1.0) but got {momentum}")
        if momentum > 0.5:
            print_log(f"momentum is here the share of the new weights, usually a small number, got {momentum}", "current", logging.WARNING)
        self.momentum = momentum

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        averaged_param.lerp_(source_param, self.momentum)


@MODELS.register_module()
class MomentumAnnealingEMA(ExponentialMovingAverage):
    """The share of the new weights falls as `gamma / (gamma + steps)`, down to `momentum`."""

    def __init__(
        self,
        model: nn.Module,
        momentum: float = 0.0002,
        gamma: int = 100,
        interval: int = 1,
        device: Any = None,
        update_buffers: bool = False,
    ) -> None:
        super().__init__(model, momentum, interval, device, update_buffers)
        if gamma <= 0:
            raise AssertionError(f"gamma must be greater than 0, but got {gamma}")
        self.gamma = gamma

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        averaged_param.lerp_(source_param, max(self.momentum, self.gamma / (self.gamma + int(steps))))
