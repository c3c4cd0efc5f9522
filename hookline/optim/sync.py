"""Synchronize gradients between ranks: switch DDP's on and off, or average them directly."""

from __future__ import annotations

from collections.abc import Callable

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
    """Average the gradients of an optimizer's parameters over all ranks; all must call this.

    A parameter that has a gradient on some ranks only has a gradient of 0 on the others.
    """
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    used = torch.tensor([float(each.grad is not None) for each in parameters])
    used = used.to(parameters[0].device)
    dist.all_reduce(used, dist.ReduceOp.MAX)
    for parameter, is_used in zip(parameters, used.tolist(), strict=True):
        if not is_used:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
