"""Optimizers with modes for training and evaluation, such as schedule-free ones.

In evaluation mode, the model has other weights than in training: an average. `eval()` and `train()`
compute one from the other, which rounds.
"""

from __future__ import annotations

import torch

from hookline.optim.groups import Optimizers, by_name


def switchable(optimizers: Optimizers | None) -> list[torch.optim.Optimizer]:
    """Return the optimizers that have the methods `train()` and `eval()`."""
    found = []
    for optimizer in by_name(optimizers).values():
        methods = (getattr(optimizer, "train", None), getattr(optimizer, "eval", None))
        if all(callable(method) for method in methods):
            found.append(optimizer)
    return found


class OptimizerModes:
    """The modes of all optimizers that have them; false if none has."""

    def __init__(self, optimizers: Optimizers | None) -> None:
        self._optimizers = switchable(optimizers)
        self._kept: list[torch.Tensor] | None = None
        self.is_training = False

    def __bool__(self) -> bool:
        return bool(self._optimizers)

    @property
    def parameters(self) -> list[torch.Tensor]:
        """The parameters whose values depend on the mode."""
        groups = [group for each in self._optimizers for group in each.param_groups]
        return [parameter for group in groups for parameter in group["params"]]

    @torch.no_grad()
    def resume(self, is_training: bool) -> None:
        """Set a mode without changing the weights, which are those of this mode already."""
        self.forget()
        values = [each.detach().clone() for each in self.parameters]
        if is_training:
            self.train()
        else:
            self.eval()
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)

    def forget(self) -> None:
        """Drop the copy of the training weights: the model has got other weights since."""
        self._kept = None

    def eval(self, exact: bool = False) -> None:
        """Give the model the weights for evaluation.

        Args:
            exact: Keep a copy of the training weights, so that `train` does not round them.
        """
        if exact:
            self._kept = [each.detach().clone() for each in self.parameters]
        self.is_training = False
        for optimizer in self._optimizers:
            optimizer.eval()  # type: ignore[attr-defined]

    @torch.no_grad()
    def train(self) -> None:
        """Give the model the weights for training."""
        self.is_training = True
        for optimizer in self._optimizers:
            optimizer.train()  # type: ignore[attr-defined]
        if self._kept is not None:
            for parameter, value in zip(self.parameters, self._kept, strict=True):
                parameter.copy_(value)
            self._kept = None
