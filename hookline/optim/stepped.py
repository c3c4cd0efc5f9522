"""The tensors that the steps of optimizers change, and calls before these steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from torch import Tensor

from hookline.optim.groups import Optimizers, by_name, param_groups


def stepped_tensors(optimizers: Optimizers | None) -> list[Tensor]:
    """Return the trained weights and the states of optimizers."""
    tensors = []
    for group in param_groups(optimizers):
        tensors += [weight for weight in group["params"] if weight.requires_grad]
    for optimizer in by_name(optimizers).values():
        for state in optimizer.state.values():
            tensors += [value for value in state.values() if isinstance(value, Tensor)]
    return tensors


def call_before_steps(optimizers: Optimizers | None, function: Callable[[], None]) -> ExitStack:
    """Call a function before each step of each optimizer, until the returned stack is closed."""
    handles = ExitStack()
    for optimizer in by_name(optimizers).values():
        handles.callback(optimizer.register_step_pre_hook(lambda *_: function()).remove)
    return handles
