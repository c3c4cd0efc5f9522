"""Switch gradient synchronization between ranks on and off, for gradient accumulation."""

from __future__ import annotations

from collections.abc import Callable

import torch
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
