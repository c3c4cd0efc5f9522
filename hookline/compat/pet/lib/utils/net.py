"""Batch norm layers and their statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import torch
from torch import nn

from hookline.engine.step import move
from hookline.hooks.precise_bn_hook import bn_layers, precise_bn
from hookline.signature import parameters


def get_bn_modules(model: nn.Module) -> list[nn.Module]:
    """The batch norm layers that are in training mode."""
    return list(bn_layers(model))


def update_bn_stats(model: nn.Module, data_loader: Iterable[Any], device: Any = "cpu", num_iters: int = 200) -> None:
    """Give each batch norm layer the mean of its statistics over so many batches; of a batch the model gets what it takes."""
    wanted = len(parameters(model.forward).known)

    def forward(batch: Any) -> None:
        batch = move(batch, torch.device(device))
        if isinstance(batch, Mapping):
            model(**batch)
        else:
            model(*(batch[:wanted] if isinstance(batch, (list, tuple)) else [batch]))

    count = precise_bn(model, forward, islice(data_loader, num_iters))
    if count < num_iters:
        raise ValueError(f"update_bn_stats is meant to run for {num_iters} iterations, but the data ended after {count}")
