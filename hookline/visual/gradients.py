"""Measurements of weights and gradients per layer."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from hookline.module_names import named_parameters

MAX_VALUES = 4096  # values of a layer in a histogram

GradientFlow = dict[str, tuple[float, float]]
LayerValues = dict[str, tuple[np.ndarray, np.ndarray]]


def measure_gradient_flow(model: nn.Module) -> GradientFlow:
    """Return mean and largest |gradient| of each layer that has gradients, in the model's order."""
    names = []
    statistics = []
    for name, pairs in _pairs_by_layer(model).items():
        names.append(name)
        statistics.append(_mean_and_largest([gradient for _, gradient in pairs]))
    if not statistics:
        return {}
    device = statistics[0].device
    # One transfer to the CPU for all layers.
    rows = torch.stack([each.to(device) for each in statistics]).tolist()
    return {name: (mean, largest) for name, (mean, largest) in zip(names, rows, strict=True)}


def sample_values(model: nn.Module) -> LayerValues:
    """Return copies of weights and gradients of each layer, at even distances if there are many."""
    values = {}
    for name, pairs in _pairs_by_layer(model).items():
        weights = [weight for weight, _ in pairs]
        gradients = [dense_values(gradient) for _, gradient in pairs]
        values[name] = (_copy_some(weights), _copy_some(gradients))
    return values


def local_part(tensor: Tensor) -> Tensor:
    """Return the shard of a sharded tensor on this rank, or the whole tensor.

    Gathering the other shards would need all ranks.
    """
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return tensor


def dense_values(tensor: Tensor) -> Tensor:
    """Return the explicit values of a sparse tensor, or the tensor itself."""
    if tensor.is_sparse:
        return tensor.coalesce().values()
    return tensor


def _pairs_by_layer(model: nn.Module) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """Return weights with their gradients on this rank, by the module that owns them."""
    layers: dict[str, list[tuple[Tensor, Tensor]]] = {}
    for name, parameter in named_parameters(model):
        if parameter.grad is None:
            continue
        weight = local_part(parameter)
        if weight.numel():
            layer = name.rpartition(".")[0] or name
            layers.setdefault(layer, []).append((weight, local_part(parameter.grad)))
    return layers


def _copy_some(tensors: list[Tensor]) -> np.ndarray:
    parts = []
    for tensor in tensors:
        stride = max(1, tensor.numel() * len(tensors) // MAX_VALUES)
        parts.append(tensor.flatten()[::stride].to("cpu", torch.float32, copy=True))
    return torch.cat(parts).numpy()


def _mean_and_largest(gradients: list[Tensor]) -> Tensor:
    """Return mean and largest |gradient| as a tensor [2]; gaps of sparse gradients count as 0."""
    total = torch.zeros((), dtype=torch.float64, device=gradients[0].device)
    largest = total.clone()
    count = 0
    for gradient in gradients:
        count += gradient.numel()
        values = dense_values(gradient).abs().double()
        if values.numel():
            total += values.sum()
            largest = torch.maximum(largest, values.max())
    return torch.stack([total / count, largest])
