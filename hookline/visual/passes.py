"""Additional forward and backward passes that do not affect training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from hookline.rng import restore_rng, rng_state


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the model in evaluation mode with gradients enabled, and undo all changes afterwards.

    Modes, buffers, gradients and random number generators are restored.
    """
    if isinstance(model, nn.parallel.DistributedDataParallel):
        model = model.module  # DDP's forward waits for all ranks
    parameters = list(model.parameters())
    if any(hasattr(parameter, "placements") for parameter in parameters):
        raise ValueError("a model that is sharded over ranks cannot run on one rank alone")
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(each, each.clone(), each._version) for each in model.buffers()]  # noqa: SLF001
    gradients = [(parameter, parameter.grad) for parameter in parameters]
    with ExitStack() as stack:
        stack.callback(restore_rng, rng_state())
        stack.callback(_restore_modes, modes)
        stack.callback(_restore_buffers, buffers)
        stack.callback(_restore_gradients, gradients)
        for module in model.modules():
            module.training = False
        for parameter in parameters:
            parameter.grad = None  # backward would add to it in place
        stack.enter_context(torch.enable_grad())
        yield model


def _restore_modes(modes: list[tuple[nn.Module, bool]]) -> None:
    for module, training in modes:
        module.training = training


def _restore_buffers(buffers: list[tuple[Tensor, Tensor, int]]) -> None:
    with torch.no_grad():
        for buffer, saved, version in buffers:
            if buffer._version != version:  # noqa: SLF001
                buffer.copy_(saved)


def _restore_gradients(gradients: list[tuple[nn.Parameter, Tensor | None]]) -> None:
    for parameter, gradient in gradients:
        parameter.grad = gradient
