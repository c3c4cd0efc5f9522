"""The global random number generators of Python, NumPy and torch, while samples are read.

Reading must not change them, and is repeated with seeds if it draws from them. Both need to know
after each batch whether a state has changed. Python and NumPy take 10 and 70 µs to return and set a
state. So the memory of a state is compared, in 1 µs, and the state is read after a change only.
"""

from __future__ import annotations

import _random
import ctypes
import random
from typing import Any, Protocol

import numpy as np
import torch

_HEADER_BYTES = object.__basicsize__
_PYTHON_BYTES = _random.Random.__basicsize__ - _HEADER_BYTES
_MT19937_BYTES = 624 * 4 + 4  # the words and the position of NumPy's generator


class GlobalGenerator(Protocol):
    """A global generator whose state can be kept."""

    def keep(self) -> None:
        """Keep the current state."""

    def has_changed(self) -> bool:
        """Return whether anything was drawn since `keep`."""
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
        self._seen: object = None
        self._state: Any = None

    def keep(self) -> None:
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            self._state = random.getstate()

    def has_changed(self) -> bool:
        return self._look() != self._seen

    def restore(self) -> None:
        random.setstate(self._state)

    def seed(self, seed: int) -> None:
        random.seed(seed)

    def _look(self) -> object:
        """Return the memory of the object after its header, and the normal number it keeps."""
        function: Any = random.random
        generator = function.__self__
        memory = ctypes.string_at(id(generator) + _HEADER_BYTES, _PYTHON_BYTES)
        return memory, generator.gauss_next


class NumpyGenerator:
    """The generator behind the functions of the module `numpy.random`."""

    def __init__(self) -> None:
        self._seen: object = None
        self._state: Any = {}

    def keep(self) -> None:
        seen = self._look()
        # A kept normal number is drawn without a change of the memory.
        if seen != self._seen or self._state["has_gauss"]:
            self._seen = seen
            self._state = np.random.get_state(legacy=False)

    def has_changed(self) -> bool:
        if self._look() != self._seen:
            return True
        if not self._state["has_gauss"]:
            return False
        state: Any = np.random.get_state(legacy=False)
        return not state["has_gauss"]

    def restore(self) -> None:
        np.random.set_state(self._state)

    def seed(self, seed: int) -> None:
        # The upper half: torch uses the lower one, and both would draw the same bits from one seed.
        np.random.seed(seed >> 32)

    def _look(self) -> object:
        """Return the memory of the state; of a generator that the user has set, its state."""
        generator: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
        if isinstance(generator, np.random.MT19937):
            return ctypes.string_at(generator.ctypes.state_address, _MT19937_BYTES)
        return repr(generator.state)


class TorchGenerator:
    """The generator of torch's numbers on the CPU."""

    def __init__(self) -> None:
        self._state = torch.empty(0)
        self._seen = b""

    def keep(self) -> None:
        self._state = torch.default_generator.get_state()
        self._seen = self._state.numpy().tobytes()

    def has_changed(self) -> bool:
        return torch.default_generator.get_state().numpy().tobytes() != self._seen

    def restore(self) -> None:
        torch.default_generator.set_state(self._state)

    def seed(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)  # torch.manual_seed seeds every device: 200 µs
