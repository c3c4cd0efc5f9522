"""Measure one pass over a loader: metrics, mean loss, predictions for the dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookline.batches import count_samples
from hookline.dist import World
from hookline.dist.gather import has_own_sync, mean_over_ranks
from hookline.errors import HooklineError, Suggestion
from hookline.metrics.base import Metric
from hookline.metrics.evaluators import DatasetEvaluator
from hookline.metrics.mean_loss import MeanLoss, MeanOutputs


class Measurement:
    """The measurement of one pass over a loader.

    Args:
        metrics: Metrics by name; they are reset.
        dataset: Gets the predictions of all batches, if it evaluates them itself.
        explain: Adds an explanation to the error of a metric, which is given by name.
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        dataset: DatasetEvaluator | None,
        explain: Callable[[Exception, str], Exception],
    ) -> None:
        self._metrics = metrics
        self._dataset = dataset
        self._explain = explain
        self._mean_loss = MeanLoss()
        self._mean_outputs = MeanOutputs()
        self._samples = 0
        self._batches = 0
        for metric in metrics.values():
            metric.reset()

    def update(self, outputs: Mapping[str, Any], batch: Any) -> None:
        """Add the outputs of a batch."""
        self._batches += 1
        self._mean_loss.update(outputs, batch)
        self._mean_outputs.update(outputs, batch)
        self._samples += count_samples(outputs, batch)
        for name, metric in self._metrics.items():
            try:
                metric.update(outputs["predictions"], outputs["targets"])
            except Exception as error:
                explained = self._explain(error, name)
                if explained is error:
                    raise
                raise explained from error
        if self._dataset is not None:
            self._dataset.update(outputs["predictions"])

    def compute(self, loss_name: str, ranks: World) -> dict[str, Any]:
        """Return all results, over all ranks; raise if there was no batch."""
        if not ranks.sum([float(self._batches)])[0]:
            mode = loss_name.partition("_")[0]
            advice = Suggestion(advice="check the size of its dataset, and drop_last")
            raise HooklineError(f"{mode}_loader gave no batches: it is empty", suggestion=advice)
        results: dict[str, Any] = {}
        for name, metric in self._metrics.items():
            value = metric.compute()
            if not has_own_sync(metric):
                value = mean_over_ranks(ranks, value, self._samples)
            results[name] = value
        if self._dataset is not None:
            results.update(self._dataset.compute(ranks))
        results.update(self._mean_loss.compute(loss_name, ranks))
        # Other numbers come last: the first result is the default metric of the best model.
        others = self._mean_outputs.compute(ranks)
        return {**results, **{name: others[name] for name in others if name not in results}}
