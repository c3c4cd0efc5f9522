"""How much memory a run takes."""

from __future__ import annotations

import functools

import psutil
import torch


def memory_mb(device: torch.device) -> float:
    """The most that tensors on a GPU have taken so far; on a CPU what the process takes now. In MB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return float(_process().memory_info().rss) / 2**20


@functools.cache
def _process() -> psutil.Process:
    return psutil.Process()
