"""Random numbers that depend on (seed, epoch, sample) alone and leave the caller's streams as they were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def epoch_key(seed: int, epoch: int) -> int:
    """The number from which all random numbers of an epoch are derived."""
    return _mix(_mix(seed) + epoch * _GOLDEN)


def order_generator(key: int) -> torch.Generator:
    """The generator for the order of an epoch's samples."""
    return torch.Generator().manual_seed(_mix(key))


def seed_sample(key: int, index: int) -> None:
    """Seed python's, numpy's and torch's random numbers for one sample of an epoch.

    An epoch visits each index once and in an order given by (seed, epoch), so that the index says as much as the position
    does. This takes some 10 µs; `torch.manual_seed` alone would take 200, because it sees to every accelerator too.
    """
    seed = _mix(key + (index + 1) * _GOLDEN)
    random.seed(seed)
    np.random.seed(seed >> 32)  # torch uses the lower half, and with the same number both would draw the same bits
    torch.default_generator.manual_seed(seed)


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Whatever random numbers are drawn or seeded inside, outside nothing has happened."""
    python, numpy, of_torch = random.getstate(), np.random.get_state(legacy=False), torch.default_generator.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.default_generator.set_state(of_torch)


def _mix(value: int) -> int:
    """The finalizer of SplitMix64: neighbours become unrelated 64-bit numbers."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
