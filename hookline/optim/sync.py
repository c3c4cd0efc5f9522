"""Synchronize gradients between ranks: switch DDP's on and off, or average them directly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def gradient_sync(model: torch.nn.Module) -> Callable[[bool], None] | None:
    """Return a function that enables or disables gradient synchronization of a model.

    Return None for a model that does not synchronize gradients.
    """
    wrappers = [module for module in model.modules() if isinstance(module, DistributedDataParallel)]
    if not wrappers:
        return getattr(model, "set_requires_gradient_sync", None)  # a method of FSDP2

    def enable(enabled: bool) -> None:
        for wrapper in wrappers:
            # The flag that `no_sync()` sets; it must also hold during the forward pass.
            wrapper.require_backward_grad_sync = enabled

    return enable


def average_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Average the gradients of an optimizer's parameters over all ranks; all must call this."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    averaged = average_over_ranks([each.grad for each in parameters], parameters)
    for parameter, gradient in zip(parameters, averaged, strict=True):
        parameter.grad = gradient


def average_over_ranks(
    gradients: Sequence[torch.Tensor | None], parameters: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Average the gradients of parameters over all ranks, in place; all must call this.

    A parameter that has a gradient on some ranks only has a gradient of 0 on the others.
    """
    used = torch.tensor([float(each is not None) for each in gradients])
    used = used.to(parameters[0].device)
    dist.all_reduce(used, dist.ReduceOp.MAX)
    averaged: list[torch.Tensor | None] = []
    for parameter, gradient, is_used in zip(parameters, gradients, used.tolist(), strict=True):
        if is_used and gradient is None:
            gradient = torch.zeros_like(parameter)
        if gradient is not None:
            dist.all_reduce(gradient)
            gradient /= dist.get_world_size()
        averaged.append(gradient)
    return averaged
