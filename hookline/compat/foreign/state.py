"""The state of a foreign callback as plain values that a checkpoint can hold."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from hookline.checkpoint import check_plain
from hookline.errors import ConfigError

ARRAY = "__array__"  # the only key of a dict that stands for a numpy array
NUMERIC_KINDS = "biufc"  # dtypes of numpy that torch has too


def select_plain(state: Mapping[str, Any], reject: Callable[[str], object]) -> dict[str, Any]:
    """Return the tensors, plain values and arrays of a state; call `reject` with other keys."""
    selected = {}
    for key, value in state.items():
        try:
            selected[key] = check_plain({"value": encode(value)})["value"]
        except ConfigError:
            reject(str(key))
    return selected


def encode(value: Any) -> Any:
    """Return a value with its numpy arrays as tensors, marked for `decode`."""
    if type(value) is np.ndarray and value.dtype.kind in NUMERIC_KINDS:
        return {ARRAY: torch.from_numpy(value.copy())}
    if type(value) is dict:
        return {key: encode(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(encode(item) for item in value)
    return value


def decode(value: Any) -> Any:
    """Return the value that `encode` was called with, as a copy."""
    if isinstance(value, dict):
        if list(value) == [ARRAY]:
            return value[ARRAY].numpy().copy()
        return {key: decode(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(decode(item) for item in value)
    return copy.deepcopy(value)


class ChangedAttributes:
    """The state of a callback whose framework stores none: its attributes that have changed.

    They are compared with their values at the time of wrapping. The configuration of a callback
    does not change, so it is not stored, and a resumed run may be configured differently.

    Args:
        callback: The callback.
        without: Attributes that are never stored.
    """

    def __init__(self, callback: Any, without: tuple[str, ...] = ()) -> None:
        self._callback = callback
        self._without = without
        self._initial = self._plain_attributes()

    def collect(self) -> dict[str, Any]:
        """Return the changed attributes; those that are not plain values are left out."""
        changed = {}
        for name, value in self._plain_attributes().items():
            if name not in self._initial or not _equal(value, self._initial[name]):
                changed[name] = value
        return changed

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the attributes that `collect` returned."""
        for name, value in state.items():
            setattr(self._callback, name, decode(value))

    def _plain_attributes(self) -> dict[str, Any]:
        values = {}
        for name, value in vars(self._callback).items():
            if name not in self._without and not callable(value):
                values[name] = value
        return copy.deepcopy(select_plain(values, lambda name: None))


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        same_length = len(one) == len(other)
        return same_length and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
