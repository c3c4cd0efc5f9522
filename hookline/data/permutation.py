"""A random order of any number of samples, computed from the position without a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hookline.data.seeding import mix

MAX_LENGTH = 2**62  # each half of a position is a number of at most 31 bits
ROUNDS = 6
SMALL_LENGTH = 2**12
SMALL_ROUNDS = 16  # a short order needs more rounds until all orders are equally likely

Positions = npt.NDArray[np.int64]
_Halves = npt.NDArray[np.uint32]


class FeistelPermutation:
    """A permutation of `range(length)`, given by a key, that takes no memory.

    A position is a cell of a grid with about as many rows as columns. In each round of the Feistel
    network, a hash of one coordinate is added to the other, so different cells stay different. The
    grid may have a few cells more than there are samples. A cell that is no sample is permuted
    again until it is one ("cycle walking"), which also keeps the results different.

    All results are exact integers and depend on the arguments alone. Checkpoints rely on them: a
    change of the arithmetic is a new `shuffle_method`, with its own name.

    Args:
        length: The number of samples, at least 1.
        key: Any 64-bit number; other keys give unrelated permutations.
    """

    def __init__(self, length: int, key: int) -> None:
        if not 1 <= length <= MAX_LENGTH:
            raise ValueError(f"length must be between 1 and 2**62, not {length}")
        self.length = length
        self._columns = math.isqrt(length - 1) + 1
        self._rows = -(-length // self._columns)  # rounded up
        rounds = SMALL_ROUNDS if length < SMALL_LENGTH else ROUNDS
        base = mix(key)
        self._round_keys = [np.uint32(mix(base + number) >> 32) for number in range(rounds)]

    def __call__(self, positions: Positions) -> Positions:
        """Return the samples at some positions."""
        samples = self._permute(positions)
        outside = np.flatnonzero(samples >= self.length)
        while len(outside):
            samples[outside] = self._permute(samples[outside])
            outside = outside[samples[outside] >= self.length]
        return samples

    def _permute(self, cells: Positions) -> Positions:
        rows = cells // self._columns
        changed: _Halves = rows.astype(np.uint32)
        fixed: _Halves = (cells - rows * self._columns).astype(np.uint32)
        size, other_size = self._rows, self._columns
        for round_key in self._round_keys:
            changed += _hash_below(size, fixed, round_key)
            # Modulo `size`: below it, the difference is negative and wraps to a larger number.
            np.minimum(changed, changed - np.uint32(size), out=changed)
            changed, fixed = fixed, changed
            size, other_size = other_size, size
        return changed.astype(np.int64) * self._columns + fixed


def _hash_below(limit: int, numbers: _Halves, key: np.uint32) -> Any:
    """Return a hash of each number that is below a limit."""
    hashed = numbers ^ key
    hashed *= np.uint32(0x7FEB352D)
    hashed ^= hashed >> np.uint32(15)
    hashed *= np.uint32(0x846CA68B)
    hashed ^= hashed >> np.uint32(16)
    wide = hashed.astype(np.uint64)
    wide *= np.uint64(limit)
    wide >>= np.uint64(32)
    return wide.astype(np.uint32)
