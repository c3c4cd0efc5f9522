"""Metrics that are means over samples; they need no torchmetrics, whose import takes as long as torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hookline.metrics.base import METRICS


class Mean:
    """The mean of `function(preds, targets)`: of all its elements if it gives several per batch, else weighted by samples."""

    over_all_processes = True
    _total: Any = 0
    _count: int = 0

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def update(self, preds: Any, targets: Any) -> None:
        value = self._function(preds, targets)
        if isinstance(value, Tensor) and value.ndim:
            total, count = value.detach().sum(), value.numel()
        else:
            count = len(targets)
            total = (value.detach() if isinstance(value, Tensor) else value) * count
        self._total = self._total + total  # stays on the device
        self._count += count

    def compute(self) -> Tensor:
        """The mean, over all ranks in a distributed run; NaN if there was nothing."""
        total = torch.as_tensor(self._total)
        total = total.to(torch.float32 if total.device.type == "mps" else torch.float64)
        count = torch.full_like(total, self._count)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(total)
            torch.distributed.all_reduce(count)
        return total / count

    def reset(self) -> None:
        self._total, self._count = 0, 0


@METRICS.register("accuracy")
class Accuracy(Mean):
    """The share of right predictions, over all samples (micro); with `top_k`, of targets among the k highest scores.

    Takes scores (or probabilities) of shape [N, classes, …] for targets [N, …]; scores of the same shape as the targets are
    binary or multi-label, and whole numbers are labels.
    """

    def __init__(self, top_k: int = 1) -> None:
        if top_k < 1:
            raise ValueError(f"accuracy: top_k must be at least 1, got {top_k}")
        self.top_k = top_k
        self._looked = False
        super().__init__(self._correct)

    def _correct(self, preds: Tensor, targets: Tensor) -> Tensor:
        if preds.ndim == targets.ndim + 1 and preds.shape[1] == 1:
            preds = preds.squeeze(1)
        if preds.ndim == targets.ndim + 1:
            if self.top_k == 1:
                return preds.argmax(1) == targets
            if self.top_k > preds.shape[1]:
                raise ValueError(f"accuracy: top_k is {self.top_k}, but the predictions have {preds.shape[1]} classes")
            return (preds.topk(self.top_k, dim=1).indices == targets.unsqueeze(1)).any(1)
        _check_same_shape("accuracy", preds, targets)
        if targets.is_floating_point() and not self._looked:
            self._look(targets)
        if preds.is_floating_point():  # probabilities or logits, told apart without waiting for the device
            probabilities = ((preds >= 0) & (preds <= 1)).all()
            preds = preds > torch.where(probabilities, 0.5, 0.0)
        return preds == targets.to(preds.dtype)

    def _look(self, targets: Tensor) -> None:
        """Refuse measurements where classes are wanted; at the first batch only, because it waits for the device."""
        self._looked = True
        low, high = (float(value) for value in targets.aminmax()) if targets.numel() else (0.0, 1.0)
        if low < 0 or high > 1:
            raise ValueError(f"accuracy is for classes, and the targets are numbers from {low:.3g} to {high:.3g}: take mae or mse")


@METRICS.register("mae")
class MeanAbsoluteError(Mean):
    """The mean of |prediction - target| over all values."""

    def __init__(self) -> None:
        super().__init__(lambda preds, targets: _difference("mae", preds, targets).abs())


@METRICS.register("mse")
class MeanSquaredError(Mean):
    """The mean of (prediction - target)² over all values."""

    def __init__(self) -> None:
        super().__init__(lambda preds, targets: _difference("mse", preds, targets).square())


def _difference(name: str, preds: Tensor, targets: Tensor) -> Tensor:
    if preds.ndim == targets.ndim + 1 and preds.shape[-1] == 1:  # the usual output of a model with one value per sample
        preds = preds.squeeze(-1)
    _check_same_shape(name, preds, targets)
    return preds.float() - targets.float()


def _check_same_shape(name: str, preds: Tensor, targets: Tensor) -> None:
    if preds.shape != targets.shape:
        raise ValueError(f"{name}: predictions of shape {tuple(preds.shape)} do not fit targets of shape {tuple(targets.shape)}")
