"""Copies of the inputs, targets and predictions of a step, to be drawn while training continues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from hookline.batches import INPUT_KEYS, TARGET_KEYS
from hookline.engine import BaseRunner
from hookline.visual.images import channels_last, shape_text


class Samples(NamedTuple):
    """The first samples of a batch, as numpy arrays in the containers of the originals."""

    inputs: Any
    targets: Any
    predictions: Any

    def images(self) -> list[np.ndarray]:
        """Return the inputs as images [H, W, C]; raise ValueError if they are something else."""
        inputs = self.inputs
        if not isinstance(inputs, (np.ndarray, list)) or not len(inputs):
            raise ValueError(f"expected a batch of images, got {type(inputs).__name__}")
        if isinstance(inputs, np.ndarray) and inputs.ndim not in (3, 4):
            raise ValueError(f"expected images [N, C, H, W], got {shape_text(inputs)}")
        return [channels_last(np.asarray(image)) for image in inputs]


def take_samples(runner: BaseRunner, count: int) -> Samples:
    """Copy the first `count` inputs, targets and predictions of the current step."""
    targets = runner.outputs.get("targets")
    if targets is None:
        targets = _find_part(runner.batch, TARGET_KEYS, 1)
    return Samples(
        _copy_first(get_inputs(runner.batch), count),
        _copy_first(targets, count),
        _copy_first(runner.outputs.get("predictions"), count),
    )


def get_inputs(batch: Any) -> Any:
    """Return the inputs of a batch, None if they are not found."""
    if isinstance(batch, torch.Tensor):
        return batch
    return _find_part(batch, INPUT_KEYS, 0)


def take_image(batch: Any, index: int) -> np.ndarray | None:
    """Copy the input of a sample as an image [H, W, C]; None if the inputs are not images.

    Args:
        index: Index of the sample; the last one of a smaller batch.
    """
    inputs = get_inputs(batch)
    if isinstance(inputs, torch.Tensor) and inputs.ndim not in (3, 4):
        return None
    if not isinstance(inputs, (torch.Tensor, list, tuple)) or not len(inputs):
        return None
    sample = inputs[min(index, len(inputs) - 1)]
    if not isinstance(sample, torch.Tensor) or sample.ndim not in (2, 3):
        return None
    return channels_last(to_array(sample))


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """Copy a tensor into a numpy array."""
    tensor = tensor.detach()
    if tensor.is_floating_point():
        tensor = tensor.float()  # numpy has no bfloat16
    return tensor.to("cpu", copy=True).numpy()


def get_class_names(runner: BaseRunner, mode: str) -> list[str]:
    """Return the class names of the data set of `train` or `val`, empty if it has none."""
    loader = getattr(runner, f"{mode}_loader", None)
    if isinstance(loader, Mapping):
        loader = next(iter(loader.values()), None)
    dataset = getattr(loader, "dataset", None)
    names = getattr(dataset, "class_names", None) or getattr(dataset, "classes", None)
    return [str(name) for name in names or ()]


def _find_part(batch: Any, keys: tuple[str, ...], index: int) -> Any:
    """Return a part of a batch by the first key that it has, or by its index."""
    if isinstance(batch, Mapping):
        for key in keys:
            if key in batch:
                return batch[key]
    elif isinstance(batch, (list, tuple)) and len(batch) > index:
        return batch[index]
    return None


def _copy_first(value: Any, count: int) -> Any:
    """Copy the first `count` samples of a stacked or listed value."""
    if isinstance(value, torch.Tensor):
        return to_array(value[:count] if value.ndim else value)
    if isinstance(value, Mapping):
        return {key: _copy_first(part, count) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return _copy_all(value[:count])
    return value


def _copy_all(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return to_array(value)
    if isinstance(value, Mapping):
        return {key: _copy_all(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy_all(part) for part in value]
    return value
