"""The global random number generators of Python, NumPy and torch, while samples are read.

Reading samples must not change them, and is repeated with seeds if it draws from them.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

import numpy as np
import torch

# For `watch`. Long, so that no dataset seeds with it by chance.
WATCH_SEED = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A]


class GlobalGenerator(Protocol):
    """A global generator whose state can be kept."""

    def keep(self) -> None:
        """Keep the current state."""

    def watch(self) -> None:
        """Prepare for `has_changed` at a lower cost than `keep`.

        For processes in which only the dataset draws: the state of the generator is lost.
        """

    def has_changed(self) -> bool:
        """Return whether anything was drawn since `keep`, or since `watch` and the last call."""
        ...

    def restore(self) -> None:
        """Go back to the state at `keep`."""

    def seed(self, seed: int) -> None:
        """Seed the generator with a 64-bit number."""


def global_generators() -> list[GlobalGenerator]:
    """Return the three generators, without a kept state."""
    return [PythonGenerator(), NumpyGenerator(), TorchGenerator()]


class PythonGenerator:
    """The generator behind the functions of the module `random`."""

    def __init__(self) -> None:
        self._state: Any = None
        self._twin: random.Random | None = None  # yields the same numbers until one is drawn

    def keep(self) -> None:
        self._state = random.getstate()

    def watch(self) -> None:
        seed = sum(word << 32 * place for place, word in enumerate(WATCH_SEED))
        random.seed(seed)
        self._twin = random.Random(seed)

    def has_changed(self) -> bool:
        if self._twin is not None:
            return random.getrandbits(128) != self._twin.getrandbits(128)
        return bool(random.getstate() != self._state)

    def restore(self) -> None:
        random.setstate(self._state)

    def seed(self, seed: int) -> None:
        random.seed(seed)


class NumpyGenerator:
    """The generator behind the functions of the module `numpy.random`.

    Getting its state takes about 35 µs, most of the cost of a check.
    """

    def __init__(self) -> None:
        self._state: Any = {}
        self._twin: np.random.RandomState | None = None

    def keep(self) -> None:
        self._state = np.random.get_state(legacy=False)

    def watch(self) -> None:
        generator = np.random.get_bit_generator()  # type: ignore[attr-defined]
        if not isinstance(generator, np.random.MT19937):
            self.keep()  # another one cannot be seeded
            return
        np.random.seed(WATCH_SEED)
        self._twin = np.random.RandomState(WATCH_SEED)

    def has_changed(self) -> bool:
        if self._twin is not None:
            return bool(np.random.rand(2).tolist() != self._twin.rand(2).tolist())
        return not _are_equal(np.random.get_state(legacy=False), self._state)

    def restore(self) -> None:
        np.random.set_state(self._state)

    def seed(self, seed: int) -> None:
        # The upper half: torch uses the lower one, and both would draw the same bits from one seed.
        np.random.seed(seed >> 32)


class TorchGenerator:
    """The generator of torch's numbers on the CPU."""

    def __init__(self) -> None:
        self._state = torch.empty(0)
        self._bytes = b""  # of the state: compared faster than a tensor

    def keep(self) -> None:
        self._state = torch.default_generator.get_state()
        self._bytes = self._state.numpy().tobytes()

    def watch(self) -> None:
        self.keep()  # getting this state takes a microsecond

    def has_changed(self) -> bool:
        return torch.default_generator.get_state().numpy().tobytes() != self._bytes

    def restore(self) -> None:
        torch.default_generator.set_state(self._state)

    def seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)  # torch.manual_seed seeds every device: 200 µs


def _are_equal(state: Any, other: Any) -> bool:
    """Return whether two states of NumPy, nested dicts of numbers and arrays, are equal."""
    if isinstance(state, dict):
        return state.keys() == other.keys() and all(
            _are_equal(value, other[key]) for key, value in state.items()
        )
    return bool(np.array_equal(state, other))
