"""Modules that hold an average of a model's weights."""

from __future__ import annotations

import logging
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.registry import MODELS


class BaseAveragedModel(nn.Module):
    """A copy of a model whose weights `avg_func` updates.

    Args:
        model: The model.
        interval: Calls of `update_parameters` between two updates.
        device: The device of the copy; that of the model by default.
        update_buffers: Average the buffers too; otherwise they are copied.
    """

    def __init__(
        self, model: nn.Module, interval: int = 1, device: Any = None, update_buffers: bool = False
    ) -> None:
        super().__init__()
        self.module = deepcopy(model).requires_grad_(False)
        if device is not None:
            self.module = self.module.to(device)
        self.interval = interval
        self.update_buffers = update_buffers
        self.register_buffer("steps", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_parameters = self._averaged_tensors(self.module)

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} must implement avg_func(averaged_param, source_param, steps)"
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @torch.no_grad()
    def update_parameters(self, model: nn.Module) -> None:
        """Update the average with the current weights of a model."""
        source = self._averaged_tensors(model)
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

    def _averaged_tensors(self, model: nn.Module) -> dict[str, Tensor]:
        return dict(model.state_dict() if self.update_buffers else model.named_parameters())


@MODELS.register_module()
class StochasticWeightAverage(BaseAveragedModel):
    """The mean of all weights so far."""

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        share = 1 / float(steps // self.interval + 1)
        averaged_param.add_(source_param - averaged_param, alpha=share)


@MODELS.register_module()
class ExponentialMovingAverage(BaseAveragedModel):
    """An exponential average: `average = (1 - momentum) * average + momentum * weights`."""

    def __init__(
        self,
        model: nn.Module,
        momentum: float = 0.0002,
        interval: int = 1,
        device: Any = None,
        update_buffers: bool = False,
    ) -> None:
        super().__init__(model, interval, device, update_buffers)
        if not 0.0 < momentum < 1.0:
            raise AssertionError(f"momentum must be in range (0.0, 1.0) but got {momentum}")
        if momentum > 0.5:
            print_log(
                f"momentum is the share of the new weights, which is usually small; got {momentum}",
                "current",
                logging.WARNING,
            )
        self.momentum = momentum

    def avg_func(self, averaged_param: Tensor, source_param: Tensor, steps: Any) -> None:
        averaged_param.lerp_(source_param, self.momentum)


@MODELS.register_module()
class MomentumAnnealingEMA(ExponentialMovingAverage):
    """An average whose share of new weights decays as `gamma / (gamma + steps)` to `momentum`."""

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
        share = max(self.momentum, self.gamma / (self.gamma + int(steps)))
        averaged_param.lerp_(source_param, share)
