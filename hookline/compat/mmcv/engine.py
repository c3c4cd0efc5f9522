"""Run a model over a test set."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from hookline.compat.missing import not_covered
from hookline.dist import current_world


def single_gpu_test(model: nn.Module, data_loader: Any) -> list[Any]:
    """Return the results of `model(return_loss=False, **batch)` for all batches, in one list."""
    model.eval()
    results: list[Any] = []
    with torch.no_grad():
        for data in data_loader:
            results.extend(model(return_loss=False, **data))
    return results


def multi_gpu_test(
    model: nn.Module, data_loader: Any, tmpdir: str | None = None, gpu_collect: bool = False
) -> list[Any] | None:
    """Run a model on the share of each rank; return all results, in the order of the data set.

    Only rank 0 gets them. `tmpdir` and `gpu_collect` are ignored: the process group gathers.
    """
    return collect_results(single_gpu_test(model, data_loader), len(data_loader.dataset))


def collect_results(result_part: list[Any], size: int) -> list[Any] | None:
    """Return the results of all ranks, each of which has every n-th one; None except on rank 0."""
    world = current_world()
    if world.size == 1:
        return result_part[:size]
    parts: list[Any] | None = [None] * world.size if world.is_main else None
    dist.gather_object(result_part, parts)
    if parts is None:
        return None
    missing = object()
    ordered = []
    for row in itertools.zip_longest(*parts, fillvalue=missing):
        for item in row:
            if item is not missing:
                ordered.append(item)
    return ordered[:size]


__getattr__ = not_covered(__name__, globals())
