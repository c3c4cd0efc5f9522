"""Batch norm layers and their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import torch
from torch import nn

from hookline.batches import move
from hookline.hooks.precise_bn_hook import bn_layers, precise_bn
from hookline.signature import parameters


def get_bn_modules(model: nn.Module) -> list[nn.Module]:
    """Return the batch norm layers that are in training mode."""
    return list(bn_layers(model))


def update_bn_stats(
    model: nn.Module, data_loader: Iterable[Any], device: Any = "cpu", num_iters: int = 200
) -> None:
    """Set the statistics of each batch norm layer to their mean over several batches.

    The model is called with as many parts of a batch as its `forward` takes.
    """
    part_count = len(parameters(model.forward).known)

    def forward(batch: Any) -> None:
        batch = move(batch, torch.device(device))
        if isinstance(batch, Mapping):
            model(**batch)
        elif isinstance(batch, (list, tuple)):
            model(*batch[:part_count])
        else:
            model(batch)

    count = precise_bn(model, forward, islice(data_loader, num_iters))
    if count < num_iters:
        raise ValueError(
            f"update_bn_stats is meant to run for {num_iters} iterations, but the data ended "
            f"after {count}"
        )
