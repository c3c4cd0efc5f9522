"""Weights of samples, for sampling with replacement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.data import Subset, TensorDataset

from hookline.data.options import find_function
from hookline.errors import ConfigError, Suggestion

SampleWeights = Literal["balanced"] | str | Sequence[float] | Tensor | Callable[[Any], Any]


def find_weights(dataset: Any, given: SampleWeights) -> Tensor:
    """Return one weight per sample.

    Args:
        dataset: The dataset.
        given: The weights; `balanced`, with which all classes are equally likely; or a function of
            the dataset, also as a dotted path, that returns the weights.

    Raises:
        ConfigError: If there is not one finite weight for each sample, or no class to balance.
    """
    found: Any = given
    if isinstance(given, str) and given == "balanced":
        found = _balance(find_targets(dataset))
    elif isinstance(given, str) or callable(given):
        found = find_function(given)(dataset)
    try:
        weights = torch.as_tensor(found, dtype=torch.float64, device="cpu").flatten()
    except (TypeError, ValueError, RuntimeError) as error:
        raise _error("'sample_weights' must be numbers", "pass one number per sample") from error
    if len(weights) != len(dataset):
        raise _error(
            f"there are {len(weights)} weights for {len(dataset)} samples", "pass one per sample"
        )
    if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()) or not weights.any():
        message = "'sample_weights' must be finite, not negative, and not all 0"
        raise _error(message, "check the weights")
    return weights


def find_targets(dataset: Any) -> Tensor:
    """Return the class of each sample.

    It comes from the attribute `targets`, or from the last tensor of a TensorDataset.

    Raises:
        ConfigError: If the dataset has neither.
    """
    if isinstance(dataset, Subset):
        return find_targets(dataset.dataset)[torch.as_tensor(dataset.indices)]
    targets = getattr(dataset, "targets", None)
    if targets is None and isinstance(dataset, TensorDataset):
        targets = dataset.tensors[-1]
    if targets is not None:
        classes = torch.as_tensor(targets, device="cpu")
        if classes.ndim == 1 and not classes.is_floating_point():
            return classes
    raise _error(
        f"cannot balance {type(dataset).__name__}: the class of each sample is unknown",
        "give the dataset an attribute 'targets' with one class per sample, or pass weights",
    )


def _balance(targets: Tensor) -> Tensor:
    """Return weights with which all classes are equally likely."""
    _, classes, counts = torch.unique(targets, return_inverse=True, return_counts=True)
    weights: Tensor = 1 / counts.double()[classes]
    return weights


def _error(message: str, advice: str) -> ConfigError:
    return ConfigError(
        message,
        component="loader",
        parameter="sample_weights",
        suggestion=Suggestion(advice=advice),
    )
