"""The mean loss and other means of an evaluation, and the conversion of results to numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from hookline.batches import COUNTS, count_samples, stated_count
from hookline.dist import World

STANDARD_OUTPUTS = ("loss", "predictions", "targets")  # A model's own step may return more.
NUMBERS = (int, float, np.integer, np.floating)


class MeanLoss:
    """The mean loss over all batches, weighted by the number of samples or tokens.

    It stays on the device until the end.
    """

    def __init__(self) -> None:
        self._total: Any = 0.0
        self._samples: Any = 0  # of batches that have a loss

    def update(self, outputs: Mapping[str, Any], batch: Any) -> None:
        """Add the loss of a batch, if there is one."""
        loss = outputs.get("loss")
        if loss is not None:
            count = stated_count(outputs)
            if count is None:
                count = count_samples(outputs, batch)
            self._total = self._total + loss * count
            self._samples = self._samples + count

    def compute(self, name: str, world: World) -> dict[str, Any]:
        """Return the mean over all ranks by its name, or nothing if there was no loss."""
        if world.size == 1:
            return {name: self._total / self._samples} if self._samples else {}
        total, samples = world.sum([float(self._total), float(self._samples)])
        return {name: total / samples} if samples else {}


class MeanOutputs:
    """The means of the numbers that a model's step returns beside its loss, by samples."""

    def __init__(self) -> None:
        self._totals: dict[str, Any] = {}
        self._samples: dict[str, int] = {}

    def update(self, outputs: Mapping[str, Any], batch: Any) -> None:
        """Add the numbers of a batch."""
        numbers = {
            name: value
            for name, value in outputs.items()
            if name not in (*STANDARD_OUTPUTS, *COUNTS) and is_number(value)
        }
        if not numbers:
            return
        count = count_samples(outputs, batch)
        for name, value in numbers.items():
            if isinstance(value, np.number):
                value = float(value)  # A sum in half precision would lose digits.
            self._totals[name] = self._totals.get(name, 0.0) + value * count
            self._samples[name] = self._samples.get(name, 0) + count

    def compute(self, world: World) -> dict[str, Any]:
        """Return the means over all ranks."""
        if world.size == 1:
            return {name: total / self._samples[name] for name, total in self._totals.items()}
        own = {name: (float(self._totals[name]), self._samples[name]) for name in self._totals}
        totals: dict[str, float] = {}
        samples: dict[str, int] = {}
        for text in world.gather_text(json.dumps(own)):  # A rank may have no batches.
            for name, (total, count) in json.loads(text).items():
                totals[name] = totals.get(name, 0.0) + total
                samples[name] = samples.get(name, 0) + count
        return {name: total / samples[name] for name, total in totals.items()}


def is_number(value: Any) -> bool:
    """Return whether a value is one number."""
    if isinstance(value, torch.Tensor):
        return value.ndim == 0
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def as_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Convert results to numbers, in one transfer from the device.

    A tensor with several elements becomes `name_0`, `name_1`, …
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update({str(key): item for key, item in value.items()})
        elif isinstance(value, torch.Tensor) and value.numel() > 1:
            flat.update({f"{name}_{index}": item for index, item in enumerate(value.flatten())})
        else:
            flat[name] = value
    tensors = {name: value for name, value in flat.items() if isinstance(value, torch.Tensor)}
    if tensors:
        scalars = [value.detach().reshape(()).double() for value in tensors.values()]
        flat.update(zip(tensors, torch.stack(scalars).tolist(), strict=True))
    return {name: float(value) for name, value in flat.items()}
