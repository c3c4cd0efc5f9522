"""What a data set tells about itself, so that a model can be fitted to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from hookline.data.seeding import preserved_rng


@dataclass(frozen=True)
class DataInfo:
    """What is known of a data set; None is unknown. `in_channels` is known for inputs of three dimensions (images)."""

    in_channels: int | None = None
    num_classes: int | None = None
    input_shape: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None


def describe(dataset: Dataset[Any]) -> DataInfo:
    """What a data set offers: `num_classes`, `class_names` (or `classes`), and its first sample's shape; draws no random numbers."""
    shape = _input_shape(dataset)
    names = _attribute(dataset, "class_names", "classes")
    if names is not None and not (isinstance(names, Sequence) and all(isinstance(name, str) for name in names)):
        names = None
    classes = _attribute(dataset, "num_classes")
    if not isinstance(classes, int):
        classes = len(names) if names is not None else _count_labels(dataset)
    return DataInfo(
        in_channels=shape[0] if shape is not None and len(shape) == 3 else None,
        num_classes=classes,
        input_shape=shape,
        class_names=None if names is None else tuple(names),
    )


def _attribute(dataset: Any, *names: str) -> Any:
    for name in names:
        value = getattr(dataset, name, None)
        if value is not None:
            return value
    return _attribute(dataset.dataset, *names) if isinstance(dataset, Subset) else None


def _input_shape(dataset: Any) -> tuple[int, ...] | None:
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__") or len(dataset) == 0:
        return None  # taking a sample from a stream may take it away from training
    with preserved_rng():
        sample = dataset[0]
    if isinstance(sample, Mapping):
        sample = list(sample.values())
    first = sample[0] if isinstance(sample, (tuple, list)) and sample else sample
    return tuple(first.shape) if isinstance(first, Tensor) else None


def _count_labels(dataset: Any) -> int | None:
    if isinstance(dataset, Subset):
        return _count_labels(dataset.dataset)
    if not isinstance(dataset, TensorDataset) or len(dataset.tensors) < 2:
        return None
    labels = dataset.tensors[1]
    whole = labels.ndim == 1 and len(labels) > 0 and not (labels.is_floating_point() or labels.is_complex())
    return int(labels.max()) + 1 if whole else None
