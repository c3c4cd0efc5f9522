"""Extra passes through a model that leave no trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from hookline.engine.capture import restore_rng, rng_state


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[nn.Module]:
    """The model in evaluation mode, with gradients on; afterwards modes, buffers, gradients and random numbers are as before."""
    model = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model  # whose own forward waits for all ranks
    if any(hasattr(parameter, "placements") for parameter in model.parameters()):
        raise ValueError("weights that are sharded over processes cannot be used by one of them alone")
    with ExitStack() as undo:
        undo.callback(restore_rng, rng_state())
        undo.callback(_put_back_modes, [(module, module.training) for module in model.modules()])
        undo.callback(_put_back_buffers, [(buffer, buffer.clone(), buffer._version) for buffer in model.buffers()])
        undo.callback(_put_back_gradients, [(parameter, parameter.grad) for parameter in model.parameters()])
        for module in model.modules():
            module.training = False
        for parameter in model.parameters():
            parameter.grad = None  # what is added meanwhile is added to nothing
        undo.enter_context(torch.enable_grad())
        yield model


def _put_back_modes(modes: list[tuple[nn.Module, bool]]) -> None:
    for module, training in modes:
        module.training = training


def _put_back_buffers(buffers: list[tuple[torch.Tensor, torch.Tensor, int]]) -> None:
    with torch.no_grad():
        for buffer, before, version in buffers:
            if buffer._version != version:
                buffer.copy_(before)


def _put_back_gradients(gradients: list[tuple[nn.Parameter, torch.Tensor | None]]) -> None:
    for parameter, gradient in gradients:
        parameter.grad = gradient
