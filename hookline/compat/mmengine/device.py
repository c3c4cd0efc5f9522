"""`mmengine.device`: the devices of this machine."""

from __future__ import annotations

import torch

from hookline.compat.missing import not_covered


def is_cuda_available() -> bool:
    return torch.cuda.is_available()


def _is_unsupported_available() -> bool:
    """Return False, for accelerators that Hookline does not support."""
    return False


is_npu_available = _is_unsupported_available
is_mlu_available = _is_unsupported_available
is_musa_available = _is_unsupported_available
is_dipu_available = _is_unsupported_available


def is_mps_available() -> bool:
    return torch.backends.mps.is_available()


def get_device() -> str:
    """Return the name of the best device."""
    if torch.cuda.is_available():
        return "cuda"
    if is_mps_available():
        return "mps"
    return "cpu"


def get_max_cuda_memory(device: torch.device | None = None) -> int:
    """Return the peak memory of tensors in megabytes, and reset it."""
    peak = torch.cuda.max_memory_allocated(device=device) // (1024 * 1024)
    torch.cuda.reset_peak_memory_stats()
    return int(peak)


__all__ = [
    "get_device",
    "get_max_cuda_memory",
    "is_cuda_available",
    "is_mlu_available",
    "is_mps_available",
    "is_npu_available",
]
__getattr__ = not_covered(__name__, __all__)
