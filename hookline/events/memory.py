"""How much memory a run takes."""

from __future__ import annotations

import sys

import torch


def memory_mb(device: torch.device) -> float:
    """The most that tensors on the GPU have taken so far, or, on a CPU, the process. In MB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return _process_mb()


if sys.platform == "win32":
    import psutil

    def _process_mb() -> float:
        return float(psutil.Process().memory_info().peak_wset) / 2**20

else:
    import resource  # twenty times as fast as asking psutil

    def _process_mb() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
