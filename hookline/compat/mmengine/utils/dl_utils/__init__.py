"""`mmengine.utils.dl_utils`: helpers for torch."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from hookline.compat.missing import not_covered

TORCH_VERSION = str(torch.__version__)


def has_batch_norm(model: torch.nn.Module) -> bool:
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def is_norm(layer: torch.nn.Module, exclude: Any = None) -> bool:
    """Return whether a layer is a normalization layer."""
    kinds = (
        _BatchNorm,
        torch.nn.modules.instancenorm._InstanceNorm,
        torch.nn.GroupNorm,
        torch.nn.LayerNorm,
    )
    if exclude is not None and isinstance(layer, exclude):
        return False
    return isinstance(layer, kinds)


def collect_env() -> dict[str, str]:
    """Return the platform, the versions and the GPU of a run as text."""
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    return {
        "sys.platform": sys.platform,
        "Python": platform.python_version(),
        "PyTorch": TORCH_VERSION,
        "GPU": gpu,
    }


def set_multi_processing(
    mp_start_method: str = "fork", opencv_num_threads: int = 0, distributed: bool = False
) -> None:
    """Set how worker processes are started, and limit OpenCV's threads if it is imported."""
    current = torch.multiprocessing.get_start_method(allow_none=True)
    if current != mp_start_method:
        torch.multiprocessing.set_start_method(mp_start_method, force=True)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(opencv_num_threads)


class TimeCounter:
    """A context manager that prints the time of its block."""

    def __init__(
        self,
        log_interval: int = 1,
        warmup_interval: int = 1,
        with_sync: bool = True,
        tag: str | None = None,
    ) -> None:
        self.tag = tag or "block"

    def __enter__(self) -> TimeCounter:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        print(f"{self.tag}: {time.perf_counter() - self._start:.3f} s")


__all__ = [
    "TORCH_VERSION",
    "TimeCounter",
    "collect_env",
    "has_batch_norm",
    "is_norm",
    "set_multi_processing",
]
__getattr__ = not_covered(__name__, __all__)
