"""Facts about a dataset, from which the parameters of a model are derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from hookline.data.seeding import preserved_rng


@dataclass(frozen=True)
class DataInfo:
    """Facts about a dataset; None for those that are unknown.

    Args:
        in_channels: The channels of an image, that is of an input with three dimensions.
        num_classes: The number of classes.
        input_shape: The shape of one input.
        class_names: The names of the classes.
    """

    in_channels: int | None = None
    num_classes: int | None = None
    input_shape: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None


def describe(dataset: Dataset[Any]) -> DataInfo:
    """Return the facts about a dataset.

    They come from its attributes `num_classes` and `class_names` (or `classes`), and from its first
    sample. No random numbers are drawn.
    """
    shape = _input_shape(dataset)
    names = _class_names(dataset)
    classes = _attribute(dataset, "num_classes")
    if not isinstance(classes, int):
        classes = _count_labels(dataset) if names is None else len(names)
    is_image = shape is not None and len(shape) == 3
    return DataInfo(
        in_channels=shape[0] if shape is not None and is_image else None,
        num_classes=classes,
        input_shape=shape,
        class_names=names,
    )


def _class_names(dataset: Any) -> tuple[str, ...] | None:
    names = _attribute(dataset, "class_names", "classes")
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def _attribute(dataset: Any, *names: str) -> Any:
    """Return the first attribute that is not None, of a dataset or of the one inside a subset."""
    for name in names:
        value = getattr(dataset, name, None)
        if value is not None:
            return value
    return _attribute(dataset.dataset, *names) if isinstance(dataset, Subset) else None


def _input_shape(dataset: Any) -> tuple[int, ...] | None:
    if isinstance(dataset, IterableDataset):
        return None  # a sample that is read here may be missing in the training
    if not hasattr(dataset, "__len__") or len(dataset) == 0:
        return None
    with preserved_rng():
        sample = dataset[0]
    if isinstance(sample, Mapping):
        sample = list(sample.values())
    if isinstance(sample, (tuple, list)) and sample:
        sample = sample[0]
    return tuple(sample.shape) if isinstance(sample, Tensor) else None


def _count_labels(dataset: Any) -> int | None:
    """Return the number of classes of a TensorDataset whose second tensor has labels."""
    if isinstance(dataset, Subset):
        return _count_labels(dataset.dataset)
    if not isinstance(dataset, TensorDataset) or len(dataset.tensors) < 2:
        return None
    labels = dataset.tensors[1]
    are_integers = not labels.is_floating_point() and not labels.is_complex()
    if labels.ndim != 1 or len(labels) == 0 or not are_integers:
        return None
    return int(labels.max()) + 1
