"""Where a run computes, and from which seed."""

from __future__ import annotations

import random

import torch


def seed_everything(seed: int) -> None:
    """Seed the random numbers of python, numpy and torch."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def pick_device(device: str | torch.device) -> torch.device:
    """A device; `auto` is the GPU if there is one."""
    if device != "auto":
        return torch.device(device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
