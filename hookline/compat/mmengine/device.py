"""`mmengine.device`: what there is to compute on."""

from __future__ import annotations

import torch

from hookline.compat.missing import not_covered


def is_cuda_available() -> bool:
    return torch.cuda.is_available()


def _never() -> bool:
    """Accelerators that Hookline does not know."""
    return False


is_npu_available = is_mlu_available = is_musa_available = is_dipu_available = _never


def is_mps_available() -> bool:
    return torch.backends.mps.is_available()


def get_device() -> str:
    return "cuda" if torch.cuda.is_available() else "mps" if is_mps_available() else "cpu"


def get_max_cuda_memory(device: torch.device | None = None) -> int:
    """The most memory that tensors took so far, in megabytes."""
    peak = torch.cuda.max_memory_allocated(device=device) // (1024 * 1024)
    torch.cuda.reset_peak_memory_stats()
    return int(peak)


__all__ = ["get_device", "get_max_cuda_memory", "is_cuda_available", "is_mlu_available", "is_mps_available", "is_npu_available"]
__getattr__ = not_covered(__name__, __all__)
