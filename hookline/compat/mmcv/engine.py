"""Running a model over a test set."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from hookline.compat.missing import not_covered
from hookline.dist import current_world


def single_gpu_test(model: nn.Module, data_loader: Any) -> list[Any]:
    """The results of `model(return_loss=False, **batch)` for all batches, in one list."""
    model.eval()
    results: list[Any] = []
    with torch.no_grad():
        for data in data_loader:
            results.extend(model(return_loss=False, **data))
    return results


def multi_gpu_test(model: nn.Module, data_loader: Any, tmpdir: str | None = None, gpu_collect: bool = False) -> list[Any] | None:
    """The same by all processes, each on its share; the main one gets the results of all in the order of the data set.

    They are gathered over the process group: `tmpdir` and `gpu_collect` are accepted and not needed.
    """
    return collect_results(single_gpu_test(model, data_loader), len(data_loader.dataset))


def collect_results(result_part: list[Any], size: int) -> list[Any] | None:
    """The results of all processes, of which each has every n-th; None but on the main one."""
    world = current_world()
    if world.size == 1:
        return result_part[:size]
    parts: list[Any] | None = [None] * world.size if world.is_main else None
    dist.gather_object(result_part, parts)
    if parts is None:
        return None
    missing = object()
    ordered = [item for row in itertools.zip_longest(*parts, fillvalue=missing) for item in row if item is not missing]
    return ordered[:size]


__getattr__ = not_covered(__name__, globals())
