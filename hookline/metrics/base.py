"""The protocol of a metric, and the registry for metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch

from hookline.registry import Registry


@runtime_checkable
class Metric(Protocol):
    """The part of torchmetrics' protocol that evaluation uses."""

    def update(self, preds: Any, targets: Any, /) -> object:
        """Add one batch."""

    def compute(self) -> Any:
        """Return the value over all batches since the last reset."""

    def reset(self) -> object:
        """Discard all batches."""


def move_metrics(metrics: Mapping[str, Metric], device: torch.device) -> dict[str, Metric]:
    """Move metrics that are modules, as in torchmetrics, to a device."""
    moved: dict[str, Metric] = {}
    for name, metric in metrics.items():
        to: Callable[[torch.device], Metric] | None = getattr(metric, "to", None)
        moved[name] = metric if to is None else to(device)
    return moved


METRICS: Registry[Metric] = Registry("metric", Metric, home="hookline.metrics.builtin")
