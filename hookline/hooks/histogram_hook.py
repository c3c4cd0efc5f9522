"""How weights and gradients are distributed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, state
from hookline.visual.gradients import own_part

BINS = 64


@HOOKS.register()
@dataclass
class HistogramHook(BaseHook):
    """Put a histogram of each parameter and of its gradient into the events every `interval` iterations, for trackers to show.

    Gradients are taken before clipping, weights before the step, and where gradients are accumulated it is the next step;
    values that are not finite are left out. Of a sharded model it is the main process's part that is counted.
    """

    interval: int = 1000
    weights: bool = True
    gradients: bool = True
    counted: int = state(0)  # how many iterations there were when it counted last

    ranks = "main"

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"HistogramHook: interval must be at least 1, got {self.interval}")

    def after_backward(self, runner: BaseRunner) -> None:
        if (runner.iter + 1) // self.interval == self.counted // self.interval:
            return
        self.counted = runner.iter + 1
        for name, parameter in runner.model.named_parameters():
            path = name.replace(".", "/")
            if self.weights:
                _put(runner, f"weights/{path}", parameter)
            if self.gradients and parameter.grad is not None:
                _put(runner, f"gradients/{path}", parameter.grad)


def _put(runner: BaseRunner, name: str, tensor: torch.Tensor) -> None:
    """Counted where the tensor is: only its bins come over."""
    tensor = own_part(tensor)
    values = (tensor.coalesce().values() if tensor.is_sparse else tensor).float().flatten()
    values = values[values.isfinite()]
    if values.numel():
        low, high = (float(edge) for edge in torch.aminmax(values))
        high = high if high > low else low + max(abs(low), 1.0) * 1e-6
        counts = torch.histc(values, BINS, low, high).long().cpu().numpy()
        edges = torch.linspace(low, high, BINS + 1, dtype=torch.float64).numpy()
        runner.events.put_histogram(name, (counts, edges))
