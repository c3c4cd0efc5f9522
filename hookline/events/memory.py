"""The memory use of a run."""

from __future__ import annotations

import sys

import torch


def memory_mb(device: torch.device) -> float:
    """Return the peak memory in MB: of tensors on a GPU, or of the process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return _process_mb()


if sys.platform == "win32":
    import psutil

    def _process_mb() -> float:
        return float(psutil.Process().memory_info().peak_wset) / 2**20

else:
    import resource  # Twenty times as fast as psutil.

    def _process_mb() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
            2**20 if sys.platform == "darwin" else 2**10
        )
