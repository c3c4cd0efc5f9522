"""Built-in metrics that are means over samples. They avoid the slow import of torchmetrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from hookline.errors import ConfigError, Suggestion, parameter_error, require_at_least
from hookline.metrics.base import METRICS


class Mean:
    """The mean of `function(preds, targets)` over all samples.

    A function that returns a tensor with several elements is averaged over all elements; a
    function that returns one value per batch is weighted by the number of samples.
    """

    over_all_processes = True
    _total: Any = 0
    _count: int = 0

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def update(self, preds: Any, targets: Any) -> None:
        value = self._function(preds, targets)
        if isinstance(value, Mapping):
            raise ConfigError(
                "the function of a metric must return a number, and not several by name",
                component=getattr(self._function, "__name__", ""),
                suggestion=Suggestion(advice="pass one function for each, or an object"),
            )
        if isinstance(value, Tensor):
            value = value.detach()
        if isinstance(value, Tensor) and value.ndim:
            total = value.sum()
            count = value.numel()
        else:
            count = len(targets)
            total = value * count
        self.add(total, count)

    def add(self, total: Any, count: int) -> None:
        """Add the sum of values of further samples."""
        self._total = self._total + total  # A tensor stays on its device.
        self._count += count

    def sums(self) -> tuple[float, int]:
        """Return the sum over all samples of this rank and their number, for `add`."""
        total = self._total
        return (total.item() if isinstance(total, Tensor) else total), self._count

    def compute(self) -> Tensor:
        """Return the mean, over all ranks in a distributed run; NaN if there was no batch."""
        total = torch.as_tensor(self._total)
        total = total.to(torch.float32 if total.device.type == "mps" else torch.float64)
        count = torch.full_like(total, self._count)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(total)
            torch.distributed.all_reduce(count)
        return total / count

    def reset(self) -> None:
        self._total = 0
        self._count = 0


@METRICS.register("accuracy")
class Accuracy(Mean):
    """The share of correct predictions over all samples (the micro average).

    Takes scores or probabilities of shape [N, classes, …] for targets [N, …]. Scores of the same
    shape as the targets are binary or multi-label; integers are labels.

    Args:
        top_k: A prediction is correct if the target is among the k highest scores.
    """

    def __init__(self, top_k: int = 1) -> None:
        self.top_k = top_k
        require_at_least(self, 1, "top_k")
        self._targets_checked = False
        super().__init__(self._correct)

    def _correct(self, preds: Tensor, targets: Tensor) -> Tensor:
        if preds.ndim == targets.ndim + 1 and preds.shape[1] == 1:
            preds = preds.squeeze(1)
        if preds.ndim == targets.ndim + 1:
            return self._correct_classes(preds, targets)
        _check_same_shape(self, preds, targets)
        if targets.is_floating_point() and not self._targets_checked:
            self._check_targets(targets)
        if preds.is_floating_point():
            # Distinguish probabilities from logits without a device synchronization.
            are_probabilities = ((preds >= 0) & (preds <= 1)).all()
            preds = preds > torch.where(are_probabilities, 0.5, 0.0)
        return preds == targets.to(preds.dtype)

    def _correct_classes(self, preds: Tensor, targets: Tensor) -> Tensor:
        if self.top_k == 1:
            return preds.argmax(1) == targets
        if self.top_k > preds.shape[1]:
            expected = f"must be at most {preds.shape[1]}, the number of classes"
            raise parameter_error(self, "top_k", expected)
        return (preds.topk(self.top_k, dim=1).indices == targets.unsqueeze(1)).any(1)

    def _check_targets(self, targets: Tensor) -> None:
        """Reject float targets that are not classes, in the first batch only: it synchronizes."""
        self._targets_checked = True
        if not targets.numel():
            return
        low, high = (float(value) for value in targets.aminmax())
        if low < 0 or high > 1:
            message = (
                f"needs classes as targets, but these are numbers from {low:.3g} to {high:.3g}"
            )
            raise ConfigError(
                message, component="Accuracy", suggestion=Suggestion(advice="use mae or mse")
            )


@METRICS.register("mae")
class MeanAbsoluteError(Mean):
    """The mean of |prediction - target| over all values."""

    def __init__(self) -> None:
        super().__init__(lambda preds, targets: _difference(self, preds, targets).abs())


@METRICS.register("mse")
class MeanSquaredError(Mean):
    """The mean of (prediction - target)² over all values."""

    def __init__(self) -> None:
        super().__init__(lambda preds, targets: _difference(self, preds, targets).square())


def _difference(metric: Mean, preds: Tensor, targets: Tensor) -> Tensor:
    if preds.ndim == targets.ndim + 1 and preds.shape[-1] == 1:
        preds = preds.squeeze(-1)  # A model with one output per sample.
    _check_same_shape(metric, preds, targets)
    return preds.float() - targets.float()


def _check_same_shape(metric: Mean, preds: Tensor, targets: Tensor) -> None:
    if preds.shape != targets.shape:
        raise ConfigError(
            f"predictions of shape {tuple(preds.shape)} do not match targets of shape "
            f"{tuple(targets.shape)}",
            component=type(metric).__name__,
        )
