"""Metrics by name: built-in ones, those of torchmetrics, and those that users register."""

from __future__ import annotations

from hookline.metrics.base import METRICS, Metric
from hookline.metrics.build import build_metric, build_metrics, check_metric, known_metrics
from hookline.metrics.direction import infer_direction
from hookline.metrics.results import Metrics

__all__ = [
    "METRICS",
    "Metric",
    "Metrics",
    "build_metric",
    "build_metrics",
    "check_metric",
    "infer_direction",
    "known_metrics",
]
