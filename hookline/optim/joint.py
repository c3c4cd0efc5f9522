"""Several optimizers that step as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookline.optim.groups import Group, Optimizers
from hookline.signature import parameters


class JointOptimizer:
    """Optimizers that are stepped and cleared together, with the groups of all.

    Gradient clipping and a loss scaler see the parameters of all of them.
    """

    def __init__(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> None:
        self.optimizers = list(optimizers.values())

    @property
    def param_groups(self) -> list[Group]:
        """The parameter groups of all optimizers."""
        groups: list[Group] = []
        for optimizer in self.optimizers:
            groups += optimizer.param_groups
        return groups

    def step(self) -> None:
        """Step each optimizer."""
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Call a function after the last optimizer's step; return a handle."""
        return self.optimizers[-1].register_step_post_hook(hook)


def as_one(optimizers: Optimizers) -> Any:
    """Return an optimizer with the interface of one: itself, or several jointly."""
    if not isinstance(optimizers, Mapping):
        return optimizers
    return JointOptimizer(optimizers)


def needs_closure(optimizer: Any) -> bool:
    """Return whether `step` must be given a function that computes the loss, as LBFGS's."""
    return "closure" in parameters(optimizer.step).required()
