"""Run a model over a test set."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hookline.compat.openmmlab import gather_results


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
    return gather_results(single_gpu_test(model, data_loader), len(data_loader.dataset))


def collect_results_cpu(
    result_part: list[Any], size: int, tmpdir: str | None = None
) -> list[Any] | None:
    """Return the results of all ranks; `tmpdir` is ignored: the process group gathers."""
    return gather_results(result_part, size)


def collect_results_gpu(result_part: list[Any], size: int) -> list[Any] | None:
    """Return the results of all ranks; None except on rank 0."""
    return gather_results(result_part, size)
