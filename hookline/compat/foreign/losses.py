"""The mean of the losses so far, at next to no cost per batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

KEPT = 512  # losses that wait on the device before they are added up


class MeanLoss:
    """Weighted by samples, or not; losses wait where they are until someone wants the mean."""

    def __init__(self, weighted: bool = True) -> None:
        self._weighted = weighted
        self.reset()

    @property
    def started(self) -> bool:
        return bool(self._samples or self._waiting)

    def reset(self) -> None:
        self._total, self._samples = 0.0, 0
        self._waiting: list[torch.Tensor] = []
        self._weights: list[int] = []

    def add(self, outputs: Mapping[str, Any]) -> None:
        self._waiting.append(outputs["loss"].detach())
        self._weights.append(self._weight(outputs))
        if len(self._waiting) >= KEPT:
            self._fetch()

    def add_and_tell(self, outputs: Mapping[str, Any]) -> float:
        """Add a loss and return the mean, for someone who wants it after every batch and so waits for the device each time."""
        if self._waiting:
            self._fetch()
        weight = self._weight(outputs)
        self._total += outputs["loss"].item() * weight
        self._samples += weight
        return self._total / self._samples

    def value(self) -> float:
        self._fetch()
        return self._total / self._samples if self._samples else float("nan")

    def state(self) -> list[float]:
        self._fetch()
        return [self._total, self._samples]

    def load(self, state: Sequence[float]) -> None:
        self.reset()
        self._total, self._samples = state[0], int(state[1])

    def _weight(self, outputs: Mapping[str, Any]) -> int:
        targets = outputs.get("targets") if self._weighted else None
        return 1 if targets is None else len(targets)

    def _fetch(self) -> None:
        if self._waiting:
            losses = torch.stack(self._waiting).double().tolist()
            self._total += sum(loss * weight for loss, weight in zip(losses, self._weights, strict=True))
            self._samples += sum(self._weights)
            self._waiting, self._weights = [], []
