"""Metrics by name: a few light ones of our own, all of torchmetrics, and whatever users register."""

from __future__ import annotations

from hookline.metrics.base import METRICS, Metric
from hookline.metrics.build import build_metric, build_metrics, check_metric, known_metrics

__all__ = ["METRICS", "Metric", "build_metric", "build_metrics", "check_metric", "known_metrics"]
