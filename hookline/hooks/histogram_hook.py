"""How weights and gradients are distributed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner

BINS = 64


@HOOKS.register()
@dataclass
class HistogramHook(BaseHook):
    """Put a histogram of each parameter and of its gradient into the events every `interval` iterations, for trackers to show.

    Gradients are taken before clipping, weights before the step; values that are not finite are left out.
    """

    interval: int = 1000
    weights: bool = True
    gradients: bool = True

    ranks = "main"

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"HistogramHook: interval must be at least 1, got {self.interval}")

    def after_backward(self, runner: BaseRunner) -> None:
        if not self.every_n_iters(runner, self.interval):
            return
        for name, parameter in runner.model.named_parameters():
            path = name.replace(".", "/")
            if self.weights:
                _put(runner, f"weights/{path}", parameter)
            if self.gradients and parameter.grad is not None:
                _put(runner, f"gradients/{path}", parameter.grad)


def _put(runner: BaseRunner, name: str, tensor: torch.Tensor) -> None:
    """Counted where the tensor is: only its bins come over."""
    values = (tensor.coalesce().values() if tensor.is_sparse else tensor).detach().float().flatten()
    values = values[values.isfinite()]
    if values.numel():
        low, high = (float(edge) for edge in torch.aminmax(values))
        high = high if high > low else low + max(abs(low), 1.0) * 1e-6
        counts = torch.histc(values, BINS, low, high).long().cpu().numpy()
        edges = torch.linspace(low, high, BINS + 1, dtype=torch.float64).numpy()
        runner.events.put_histogram(name, (counts, edges))
