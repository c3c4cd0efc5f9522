"""Gradient synchronisation between processes, which accumulation leaves out until a group of batches is complete."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.parallel import DistributedDataParallel


def gradient_sync(model: torch.nn.Module) -> Callable[[bool], None] | None:
    """A switch for the synchronisation of a model's gradients; None for a model that has none to do."""
    wrappers = [module for module in model.modules() if isinstance(module, DistributedDataParallel)]
    if wrappers:

        def switch(on: bool) -> None:
            for wrapper in wrappers:
                wrapper.require_backward_grad_sync = on  # what `no_sync()` sets; it must hold for the forward as well

        return switch
    return getattr(model, "set_requires_gradient_sync", None)  # FSDP2 has it
