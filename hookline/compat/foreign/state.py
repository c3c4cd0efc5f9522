"""The state of a foreign callback as plain values, so that it can go into a checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookline.checkpoint import check_plain
from hookline.errors import ConfigError

ARRAY = "__array__"  # the only key of a dict that stands for a numpy array


def plain_part(state: Mapping[str, Any], refuse: Callable[[str], object]) -> dict[str, Any]:
    """What of a state can be stored: tensors, plain values and numpy arrays; `refuse(key)` is told of all else."""
    kept = {}
    for key, value in state.items():
        try:
            kept[key] = check_plain({"value": encode(value)})["value"]
        except ConfigError:
            refuse(str(key))
    return kept


def encode(value: Any) -> Any:
    """A value with its numpy arrays as tensors, marked so that `decode` finds them."""
    if type(value).__module__ == "numpy" and type(value).__name__ == "ndarray":
        return {ARRAY: torch.from_numpy(value.copy())} if value.dtype.kind in "biufc" else value
    if type(value) is dict:
        return {key: encode(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(encode(item) for item in value)
    return value


def decode(value: Any) -> Any:
    """What `encode` was given; nothing of it is shared with the checkpoint."""
    if isinstance(value, dict):
        return value[ARRAY].numpy().copy() if list(value) == [ARRAY] else {key: decode(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(decode(item) for item in value)
    return copy.deepcopy(value)


class ChangedAttributes:
    """The state of a callback whose framework keeps none: its attributes that differ from what they were when it was wrapped.

    What the user configured is not among them, so that a resumed run may be configured differently.
    """

    def __init__(self, callback: Any, without: tuple[str, ...] = ()) -> None:
        self._callback, self._without = callback, without
        self._before = self._plain(lambda name: None)

    def collect(self, refuse: Callable[[str], object]) -> dict[str, Any]:
        return {
            name: value for name, value in self._plain(refuse).items() if name not in self._before or not _same(value, self._before[name])
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self._callback, name, decode(value))

    def _plain(self, refuse: Callable[[str], object]) -> dict[str, Any]:
        values = {name: value for name, value in vars(self._callback).items() if name not in self._without and not callable(value)}
        return copy.deepcopy(plain_part(values, refuse))


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
