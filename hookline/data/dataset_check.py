"""Check the dataset that a loader is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from hookline.data.protocols import is_positioned
from hookline.errors import ConfigError, Suggestion


def check_dataset(dataset: Any) -> None:
    """Raise ConfigError, with advice, if a value is neither a dataset nor a sequence of samples."""
    if isinstance(dataset, IterableDataset):
        return
    advice = _advise(dataset)
    is_sequence = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    if advice is None and is_sequence:
        return
    raise ConfigError(
        "dataset must be a dataset, or a sequence of samples with a length",
        component="make_loader",
        parameter="dataset",
        value=dataset,
        suggestion=Suggestion(advice=advice or ""),
    )


def _advise(dataset: Any) -> str | None:
    """Return advice for a known mistake; None if the value is none."""
    if isinstance(dataset, type):
        return f"pass an object, {dataset.__name__}(…), not the class"
    if isinstance(dataset, str):
        return f"names are for configs; pass DATASETS.build({{'type': {dataset!r}}})"
    if isinstance(dataset, DataLoader) or is_positioned(dataset):
        return "it is a loader already: pass it to the Runner, or make one of its dataset"
    if isinstance(dataset, Iterator):
        return "it can be read only once: pass list(…), or an IterableDataset that makes it"
    if isinstance(dataset, (set, frozenset)):
        return "a set has no order: pass a list"
    if isinstance(dataset, Mapping) and 0 not in dataset:
        return f"pass one of its values: {', '.join(repr(key) for key in dataset)}"
    if _is_columns(dataset):
        return "pass TensorDataset(*tensors), whose samples have an element of each tensor"
    return None


def _is_columns(dataset: Any) -> bool:
    """Return whether a value is `(inputs, targets)`: tensors of one length and other shapes."""
    if not isinstance(dataset, (tuple, list)) or len(dataset) < 2:
        return False
    if not all(isinstance(each, torch.Tensor) and each.dim() for each in dataset[:3]):
        return False
    return len(dataset[0]) == len(dataset[1]) and dataset[0].shape != dataset[1].shape
