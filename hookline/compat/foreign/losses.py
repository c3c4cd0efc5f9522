"""The mean of the training losses so far, at next to no cost per batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hookline.batches import count_targets

MAX_PENDING = 512  # losses that are kept on the device before they are summed


class RunningLoss:
    """The mean of losses, which stay on the device until the mean is needed.

    Args:
        weighted: Weight the loss of each batch by its number of samples.
    """

    def __init__(self, weighted: bool = True) -> None:
        self._weighted = weighted
        self.reset()

    @property
    def has_losses(self) -> bool:
        """Whether there is at least one loss."""
        return bool(self._samples or self._pending)

    def reset(self) -> None:
        """Forget all losses."""
        self._total = 0.0
        self._samples = 0
        self._pending: list[torch.Tensor] = []
        self._weights: list[int] = []

    def add(self, outputs: Mapping[str, Any]) -> None:
        """Add the loss of a batch without waiting for the device."""
        self._pending.append(outputs["loss"].detach())
        self._weights.append(self._weight(outputs))
        if len(self._pending) >= MAX_PENDING:
            self._fetch()

    def add_and_compute(self, outputs: Mapping[str, Any]) -> float:
        """Add the loss of a batch and return the mean. Waits for the device."""
        self._fetch()
        weight = self._weight(outputs)
        self._total += outputs["loss"].item() * weight
        self._samples += weight
        return self._total / self._samples

    def compute(self) -> float:
        """Return the mean, or NaN if there is no loss."""
        self._fetch()
        if not self._samples:
            return float("nan")
        return self._total / self._samples

    def state(self) -> list[float]:
        """Return the sum and the weight of the losses, for a checkpoint."""
        self._fetch()
        return [self._total, self._samples]

    def load(self, state: Sequence[float]) -> None:
        """Continue from the values that `state` returned."""
        self.reset()
        self._total = state[0]
        self._samples = int(state[1])

    def _weight(self, outputs: Mapping[str, Any]) -> int:
        targets = outputs.get("targets")
        if not self._weighted or targets is None:
            return 1
        return count_targets(targets)

    def _fetch(self) -> None:
        if not self._pending:
            return
        losses = torch.stack(self._pending).double().tolist()
        for loss, weight in zip(losses, self._weights, strict=True):
            self._total += loss * weight
        self._samples += sum(self._weights)
        self._pending = []
        self._weights = []
