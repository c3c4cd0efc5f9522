"""What a metric is, and the registry for those of users."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from hookline.registry import Registry


@runtime_checkable
class Metric(Protocol):
    """The part of torchmetrics' protocol that is used."""

    def update(self, preds: Any, targets: Any) -> None:
        """Take in one batch."""

    def compute(self) -> Any:
        """The value over everything since the last reset."""

    def reset(self) -> None:
        """Forget everything."""


METRICS: Registry[Metric] = Registry("metric", Metric, home="hookline.metrics.means")
