"""The numbers behind pictures of gradients."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

VALUES = 4096  # of a layer, the most that go into a histogram

Flow = dict[str, tuple[float, float]]
Values = dict[str, tuple[np.ndarray, np.ndarray]]


def measure_flow(model: nn.Module) -> Flow:
    """Mean and largest |gradient| of each module's own parameters, in the model's order; those without gradients are left out."""
    sizes = {name: _mean_and_largest([gradient for _, gradient in pairs]) for name, pairs in _layers(model).items()}
    if not sizes:
        return {}
    device = next(iter(sizes.values())).device
    numbers = torch.stack([size.to(device) for size in sizes.values()]).tolist()  # one transfer for all
    return {name: (mean, largest) for name, (mean, largest) in zip(sizes, numbers, strict=True)}


def sample_values(model: nn.Module) -> Values:
    """Of each layer evenly chosen weights and their gradients, copied."""
    return {
        name: (_chosen([weight for weight, _ in pairs]), _chosen([_dense(gradient) for _, gradient in pairs]))
        for name, pairs in _layers(model).items()
    }


def own_part(tensor: torch.Tensor) -> torch.Tensor:
    """What this process has of a tensor: all of it, unless it is sharded; then to ask for the rest would take all processes."""
    tensor = tensor.detach()
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _layers(model: nn.Module) -> dict[str, list[tuple[torch.Tensor, torch.Tensor]]]:
    """Weights with their gradients, as far as this process has them, by the module that they are of."""
    layers: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and (weight := own_part(parameter)).numel():
            layers.setdefault(name.rpartition(".")[0] or name, []).append((weight, own_part(parameter.grad)))
    return layers


def _chosen(tensors: list[torch.Tensor]) -> np.ndarray:
    parts = [tensor.flatten()[:: max(1, tensor.numel() * len(tensors) // VALUES)] for tensor in tensors]
    return torch.cat([part.to("cpu", torch.float32, copy=True) for part in parts]).numpy()


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _mean_and_largest(gradients: list[torch.Tensor]) -> torch.Tensor:
    values = [_dense(gradient).abs().double() for gradient in gradients]
    total = torch.stack([value.sum() for value in values]).sum()
    count = sum(gradient.numel() for gradient in gradients)
    largest = torch.stack([value.max() if value.numel() else value.new_zeros(()) for value in values]).max()
    return torch.stack([total / count, largest])
