"""What a step had and made, copied so that it can be drawn while training goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from hookline.engine import BaseRunner
from hookline.engine.step import INPUT_KEYS, TARGET_KEYS
from hookline.visual.images import channels_last, shape_text


class Samples(NamedTuple):
    """The first samples of a batch, as numpy arrays in the containers they came in."""

    inputs: Any
    targets: Any
    predictions: Any

    def images(self) -> list[np.ndarray]:
        """The inputs as images [H, W, C]."""
        inputs = self.inputs
        if not isinstance(inputs, (np.ndarray, list)) or not len(inputs):
            raise ValueError(f"expected a batch of images, got {type(inputs).__name__}")
        if isinstance(inputs, np.ndarray) and inputs.ndim not in (3, 4):
            raise ValueError(f"expected images [N, C, H, W], got {shape_text(inputs)}")
        return [channels_last(np.asarray(image)) for image in inputs]


def take_samples(runner: BaseRunner, count: int) -> Samples:
    """Copies of the first `count` inputs, targets and predictions of the current step."""
    batch, outputs = runner.batch, runner.outputs
    targets = outputs.get("targets")
    if targets is None:
        targets = _part(batch, TARGET_KEYS, 1)
    return Samples(_first(input_of(batch), count), _first(targets, count), _first(outputs.get("predictions"), count))


def input_of(batch: Any) -> Any:
    """The inputs of a batch, None where they cannot be told."""
    return batch if isinstance(batch, torch.Tensor) else _part(batch, INPUT_KEYS, 0)


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A copy as a numpy array."""
    tensor = tensor.detach()
    if tensor.is_floating_point():
        tensor = tensor.float()  # numpy has no bfloat16
    return tensor.to("cpu", copy=True).numpy()


def class_names_of(runner: BaseRunner, mode: str) -> list[str]:
    """The names that the data set of `train` or `val` gives its classes."""
    loader = getattr(runner, f"{mode}_loader", None)
    loader = next(iter(loader.values()), None) if isinstance(loader, Mapping) else loader
    dataset = getattr(loader, "dataset", None)
    names = getattr(dataset, "class_names", None) or getattr(dataset, "classes", None) or []
    return [str(name) for name in names]


def _part(batch: Any, keys: tuple[str, ...], place: int) -> Any:
    if isinstance(batch, Mapping):
        return next((batch[key] for key in keys if key in batch), None)
    return batch[place] if isinstance(batch, (list, tuple)) and len(batch) > place else None


def _first(value: Any, count: int) -> Any:
    if isinstance(value, torch.Tensor):
        return as_array(value[:count] if value.ndim else value)
    if isinstance(value, Mapping):
        return {key: _first(part, count) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(part) for part in value[:count]]
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return as_array(value)
    if isinstance(value, Mapping):
        return {key: _whole(part) for key, part in value.items()}
    return [_whole(part) for part in value] if isinstance(value, (list, tuple)) else value
