"""Register the built-in metrics by importing their modules."""

from __future__ import annotations

from hookline.metrics.means import Accuracy, MeanAbsoluteError, MeanSquaredError
from hookline.metrics.text import ExactMatch, Perplexity

__all__ = ["Accuracy", "ExactMatch", "MeanAbsoluteError", "MeanSquaredError", "Perplexity"]
