"""The random number generators that a loader draws from: find, capture, restore, isolate them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import Sampler

from hookline.data.seeding import seed_sample

T = TypeVar("T")
Generator = torch.Generator | np.random.Generator | np.random.RandomState | random.Random
GENERATOR_TYPES = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
END = object()


def find_generators(loader: Any) -> dict[str, Generator]:
    """Return the generators that a loader and its samplers hold, by attribute path."""
    found: dict[str, Generator] = {}
    for name in ("generator", "sampler", "batch_sampler"):
        _collect(getattr(loader, name, None), name, found, set())
    unique = {id(generator): name for name, generator in reversed(found.items())}
    return {name: found[name] for name in sorted(unique.values())}


def capture_generators(loader: Any) -> dict[str, Any]:
    """Return the state of the generators that a loader holds, as tensors and plain values."""
    return {name: _state_of(each) for name, each in find_generators(loader).items()}


def restore_generators(loader: Any, states: Mapping[str, Any]) -> None:
    """Restore the generators that a loader holds."""
    for name, generator in find_generators(loader).items():
        if name in states:
            _restore(generator, states[name])


class Isolated(Iterator[T]):
    """The items of an iterator, which draws from copies of the global generators.

    Its draws then depend on the items alone, and not on draws of the run between two of them.
    The first item is drawn from the global generators, as in a plain loop.

    Args:
        items: The iterator.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._own: tuple[Any, ...] | None = None  # the copies, from the first item on

    def __next__(self) -> T:
        for item in self.take(1):
            return item
        raise StopIteration

    def take(self, count: int) -> list[T]:
        """Return the next items, at most `count`; switches the generators once for all of them."""
        first = self._take_first(count)
        if len(first) == count:
            return first
        with self._switched():
            return first + list(islice(self._items, count - len(first)))

    def skip(self, count: int) -> None:
        """Draw some items and drop them."""
        first = self._take_first(count)
        with self._switched():
            deque(islice(self._items, count - len(first)), maxlen=0)

    def _take_first(self, count: int) -> list[T]:
        if self._own is not None:
            return []
        first = list(islice(self._items, min(count, 1)))
        if count:
            self._own = _fork()
        return first

    @contextmanager
    def _switched(self) -> Iterator[None]:
        if self._own is None:
            yield
            return
        outer = _global_state()
        _set_global_state(self._own)
        try:
            yield
        finally:
            self._own = _global_state()
            _set_global_state(outer)


def _fork() -> tuple[Any, ...]:
    """Return a state for copies of the global generators: other numbers, from their state."""
    outer = _global_state()
    seed_sample(int(torch.empty((), dtype=torch.int64).random_()), 0)
    own = _global_state()
    _set_global_state(outer)
    return own


def _global_state() -> tuple[Any, ...]:
    numpy_state = np.random.get_state(legacy=False)
    return random.getstate(), numpy_state, torch.default_generator.get_state()


def _set_global_state(state: tuple[Any, ...]) -> None:
    python_state, numpy_state, torch_state = state
    random.setstate(python_state)
    np.random.set_state(numpy_state)
    torch.default_generator.set_state(torch_state)


def _collect(value: Any, path: str, found: dict[str, Generator], seen: set[int]) -> None:
    if isinstance(value, GENERATOR_TYPES):
        found[path] = value
    elif isinstance(value, Sampler) or path in ("sampler", "batch_sampler"):
        if id(value) in seen or not hasattr(value, "__dict__"):
            return
        seen.add(id(value))
        for name, attribute in vars(value).items():
            _collect(attribute, f"{path}.{name}", found, seen)


def _state_of(generator: Generator) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        version, internal, gauss = generator.getstate()
        return [version, torch.tensor(internal, dtype=torch.int64), gauss]
    if isinstance(generator, np.random.Generator):
        return _as_plain(generator.bit_generator.state)
    return _as_plain(generator.get_state(legacy=False))


def _restore(generator: Generator, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        version, internal, gauss = state
        generator.setstate((version, tuple(internal.tolist()), gauss))
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = _as_numpy(state)
    else:
        generator.set_state(_as_numpy(state))


def _as_plain(state: Any) -> Any:
    """Return a state of NumPy with tensors in place of arrays."""
    if isinstance(state, Mapping):
        return {key: _as_plain(value) for key, value in state.items()}
    if isinstance(state, np.ndarray):
        kind = str(state.dtype)
        return {"array": torch.tensor(state.astype(np.int64)), "dtype": kind}
    return state.item() if isinstance(state, np.generic) else state


def _as_numpy(state: Any) -> Any:
    if isinstance(state, Mapping):
        if set(state) == {"array", "dtype"}:
            return state["array"].numpy().astype(state["dtype"])
        return {key: _as_numpy(value) for key, value in state.items()}
    return state
