"""The protocol of a metric, and the registry for metrics by name."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

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


METRICS: Registry[Metric] = Registry("metric", Metric, home="hookline.metrics.means")
