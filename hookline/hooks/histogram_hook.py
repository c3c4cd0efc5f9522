"""HistogramHook: distributions of weights and gradients, for trackers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, state
from hookline.errors import require_at_least
from hookline.module_names import named_parameters
from hookline.visual.gradients import dense_values, local_part

BINS = 64


@HOOKS.register()
@dataclass
class HistogramHook(BaseHook):
    """Record histograms of the parameters and their gradients, for trackers to display.

    Weights are read before the optimizer step and gradients before clipping. With gradient
    accumulation, the hook waits for the next step. Values that are not finite are left out. For a
    sharded model, only the shard of the main rank is counted.

    Args:
        interval: Number of iterations between two records.
        weights: Record histograms of the parameters.
        gradients: Record histograms of the gradients.

    Attributes:
        recorded_at: Number of iterations at the last record.

    Example:
        ```yaml
        hooks:
          - {type: HistogramHook, interval: 1000}
        ```
    """

    interval: int = 1000
    weights: bool = True
    gradients: bool = True
    recorded_at: int = state(0)

    ranks = "main"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")

    def after_backward(self, runner: BaseRunner) -> None:
        if (runner.iter + 1) // self.interval == self.recorded_at // self.interval:
            return
        self.recorded_at = runner.iter + 1
        for name, parameter in named_parameters(runner.model):
            path = name.replace(".", "/")
            if self.weights:
                _record_histogram(runner, f"weights/{path}", parameter)
            if self.gradients and parameter.grad is not None:
                _record_histogram(runner, f"gradients/{path}", parameter.grad)


def _record_histogram(runner: BaseRunner, name: str, tensor: torch.Tensor) -> None:
    """Record a histogram that is counted on the tensor's device: only its bins are copied."""
    values = dense_values(local_part(tensor)).float().flatten()
    values = values[values.isfinite()]
    if not values.numel():
        return
    low = float(values.min())
    high = float(values.max())
    if high <= low:
        high = low + max(abs(low), 1.0) * 1e-6
    counts = torch.histc(values, BINS, low, high).long().cpu().numpy()
    edges = torch.linspace(low, high, BINS + 1, dtype=torch.float64).numpy()
    runner.events.put_histogram(name, (counts, edges))
