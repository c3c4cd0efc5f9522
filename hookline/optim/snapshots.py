"""Copies of weights and gradients, to see whether they are still the same."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class GradientSnapshot:
    """A copy of the weights and the gradients of parameters.

    Args:
        parameters: The parameters.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self._parameters = parameters
        self._copies = [each.detach().clone() for each in _tensors(parameters)]

    def is_current(self) -> bool:
        """Return whether no weight and no gradient has changed since."""
        tensors = _tensors(self._parameters)
        if len(tensors) != len(self._copies):
            return False
        pairs = zip(tensors, self._copies, strict=True)
        return all(torch.equal(tensor, copy) for tensor, copy in pairs)


def _tensors(parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the parameters, and then the gradients that exist."""
    gradients = [each.grad for each in parameters if each.grad is not None]
    return [*parameters, *gradients]
