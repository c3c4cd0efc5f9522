"""`mmengine.evaluator`: the base class of metrics, and the evaluator that runs them."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.dist import broadcast_object_list, collect_results, is_main_process
from hookline.compat.mmengine.registry import METRICS


class BaseMetric(metaclass=ABCMeta):
    """The base class of metrics.

    `process` adds to `results` after each batch; `compute_metrics` computes the metrics from them.
    """

    default_prefix: str | None = None

    def __init__(self, collect_device: str = "cpu", prefix: str | None = None) -> None:
        self.dataset_meta: dict[str, Any] | None = None
        self.collect_device = collect_device
        self.results: list[Any] = []
        self.prefix = prefix or self.default_prefix

    @abstractmethod
    def process(self, data_batch: Any, data_samples: Sequence[Any]) -> None: ...

    @abstractmethod
    def compute_metrics(self, results: list[Any]) -> dict[str, Any]: ...

    def evaluate(self, size: int) -> dict[str, Any]:
        """Return the metrics over `size` samples of all ranks, and clear the results."""
        results = collect_results(self.results, size)
        metrics: list[Any] = [None]
        if is_main_process():
            on_cpu = tree_map_only(torch.Tensor, torch.Tensor.cpu, results)
            computed = self.compute_metrics(on_cpu)
            if self.prefix:
                computed = {f"{self.prefix}/{key}": value for key, value in computed.items()}
            metrics = [computed]
        broadcast_object_list(metrics)
        self.results.clear()
        return metrics[0]  # type: ignore[no-any-return]


class Evaluator:
    """Several metrics of the same predictions."""

    def __init__(self, metrics: Any) -> None:
        self.metrics: list[BaseMetric] = []
        for metric in metrics if isinstance(metrics, Sequence) else [metrics]:
            self.metrics.append(METRICS.build(metric) if isinstance(metric, dict) else metric)
        self._dataset_meta: dict[str, Any] | None = None

    @property
    def dataset_meta(self) -> dict[str, Any] | None:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: dict[str, Any]) -> None:
        self._dataset_meta = dataset_meta
        for metric in self.metrics:
            metric.dataset_meta = dataset_meta

    def process(self, data_samples: Sequence[Any], data_batch: Any = None) -> None:
        """Add the predictions of a batch to all metrics."""
        for metric in self.metrics:
            metric.process(data_batch, list(data_samples))

    def evaluate(self, size: int) -> dict[str, Any]:
        """Return the results of all metrics over `size` samples."""
        metrics: dict[str, Any] = {}
        for metric in self.metrics:
            for name, value in metric.evaluate(size).items():
                if name in metrics:
                    raise ValueError(
                        f"there are several results with the name {name}: give the metrics "
                        "different prefixes"
                    )
                metrics[name] = value
        return metrics


__getattr__ = not_covered(__name__, advice=ADVICE)
