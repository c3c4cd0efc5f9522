"""Random number generators: seed, save and restore them. Also deterministic algorithms."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

# The faster one of the two deterministic workspaces of cuBLAS; it takes 24 MiB of GPU memory.
CUBLAS_WORKSPACE = ":4096:8"
WORD = 0xFFFFFFFF  # States of Python and NumPy are words of 32 bits, kept as signed numbers.


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, NumPy and torch."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def deterministic_algorithms(enabled: bool) -> Iterator[None]:
    """Use torch's deterministic algorithms inside a `with` block, if enabled.

    Torch's settings are restored at the end. The environment variable of cuBLAS is not, because
    cuBLAS reads it only once. If not enabled, the user's own settings stay unchanged.
    """
    if not enabled:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", CUBLAS_WORKSPACE)
    was_enabled = torch.are_deterministic_algorithms_enabled()
    was_warning = torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = torch.backends.cudnn
    try:
        with cudnn.flags(enabled=cudnn.enabled, benchmark=False, deterministic=True):
            torch.use_deterministic_algorithms(True)
            yield
    finally:
        torch.use_deterministic_algorithms(was_enabled, warn_only=was_warning)


def rng_state() -> dict[str, Any]:
    """Return the state of every generator in use, as tensors and plain values."""
    version, internal, gauss = random.getstate()
    state: dict[str, Any] = {
        "python": [version, _as_words(internal), gauss],
        "torch": torch.get_rng_state(),
    }
    if "numpy" in sys.modules:
        state["numpy"] = _numpy_state()
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_rng(state: Mapping[str, Any]) -> None:
    """Restore the generators to a state that `rng_state` returned."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(word & WORD for word in internal.tolist()), gauss))
    torch.set_rng_state(state["torch"].cpu())
    if "numpy" in state:
        _restore_numpy(state["numpy"])
    if "cuda" in state and torch.cuda.is_available():
        # The machine may have fewer or more devices than when the state was saved.
        devices = range(torch.cuda.device_count())
        for device, device_state in zip(devices, state["cuda"], strict=False):
            torch.cuda.set_rng_state(device_state, device)


def _numpy_state() -> list[Any]:
    import numpy as np

    legacy: Any = np.random.get_state(legacy=True)
    kind, keys, position, has_gauss, cached = legacy
    return [kind, _as_words(keys.tolist()), position, has_gauss, cached]


def _restore_numpy(state: list[Any]) -> None:
    import numpy as np

    kind, keys, position, has_gauss, cached = state
    words = np.array([word & WORD for word in keys.tolist()], dtype=np.uint32)
    np.random.set_state((kind, words, position, has_gauss, cached))


def _as_words(values: Sequence[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64).to(torch.int32)
