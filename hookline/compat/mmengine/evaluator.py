"""`mmengine.evaluator`: the base class of metrics, and the evaluator that runs them."""

from __future__ import annotations

import logging
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.dataset import pseudo_collate
from hookline.compat.mmengine.dist import broadcast_object_list, collect_results, is_main_process
from hookline.compat.mmengine.fileio import dump
from hookline.compat.mmengine.logging import print_log
from hookline.compat.mmengine.registry import EVALUATOR, METRICS
from hookline.compat.mmengine.structures import BaseDataElement


class BaseMetric(metaclass=ABCMeta):
    """The base class of metrics.

    `process` adds to `results` after each batch; `compute_metrics` computes the metrics from them.
    """

    default_prefix: str | None = None

    def __init__(
        self, collect_device: str = "cpu", prefix: str | None = None, collect_dir: str | None = None
    ) -> None:
        if collect_dir is not None and collect_device != "cpu":
            raise ValueError("`collect_dir` could only be configured when `collect_device='cpu'`")
        self._dataset_meta: dict[str, Any] | None = None
        self.collect_device = collect_device
        self.collect_dir = collect_dir
        self.results: list[Any] = []
        self.prefix = prefix or self.default_prefix
        if self.prefix is None:
            print_log(
                f"The prefix is not set in metric class {type(self).__name__}.",
                "current",
                logging.WARNING,
            )

    @property
    def dataset_meta(self) -> dict[str, Any] | None:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: dict[str, Any]) -> None:
        self._dataset_meta = dataset_meta

    @abstractmethod
    def process(self, data_batch: Any, data_samples: Sequence[Any]) -> None: ...

    @abstractmethod
    def compute_metrics(self, results: list[Any]) -> dict[str, Any]: ...

    def evaluate(self, size: int) -> dict[str, Any]:
        """Return the metrics over `size` samples of all ranks, and clear the results."""
        if not self.results:
            print_log(
                f"{type(self).__name__} got empty `self.results`: does `process` add to them?",
                "current",
                logging.WARNING,
            )
        results = collect_results(self.results, size, self.collect_device, tmpdir=self.collect_dir)
        metrics: list[Any] = [None]
        if is_main_process():
            computed = self.compute_metrics(_to_cpu(results))
            if self.prefix:
                computed = {f"{self.prefix}/{key}": value for key, value in computed.items()}
            metrics = [computed]
        broadcast_object_list(metrics)
        self.results.clear()
        return metrics[0]  # type: ignore[no-any-return]


@METRICS.register_module()
class DumpResults(BaseMetric):
    """A metric that writes all predictions to a pickle file."""

    def __init__(
        self, out_file_path: str, collect_device: str = "cpu", collect_dir: str | None = None
    ) -> None:
        super().__init__(collect_device=collect_device, collect_dir=collect_dir)
        if not out_file_path.endswith((".pkl", ".pickle")):
            raise ValueError("The output file must be a pkl file.")
        self.out_file_path = out_file_path

    def process(self, data_batch: Any, data_samples: Sequence[Any]) -> None:
        self.results.extend(_to_cpu(list(data_samples)))

    def compute_metrics(self, results: list[Any]) -> dict[str, Any]:
        dump(results, self.out_file_path)
        print_log(f"Results has been saved to {self.out_file_path}.", "current")
        return {}


@EVALUATOR.register_module()
class Evaluator:
    """Several metrics of the same predictions."""

    def __init__(self, metrics: Any) -> None:
        self._dataset_meta: dict[str, Any] | None = None
        self.metrics: list[BaseMetric] = []
        if not isinstance(metrics, Sequence):
            metrics = [metrics]
        for metric in metrics:
            self.metrics.append(METRICS.build(metric) if isinstance(metric, dict) else metric)

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
        samples = []
        for sample in data_samples:
            is_element = isinstance(sample, BaseDataElement)
            samples.append(sample.to_dict() if is_element else sample)
        for metric in self.metrics:
            metric.process(data_batch, samples)

    def evaluate(self, size: int) -> dict[str, Any]:
        """Return the results of all metrics over `size` samples."""
        metrics: dict[str, Any] = {}
        for metric in self.metrics:
            for name, value in metric.evaluate(size).items():
                if name in metrics:
                    raise ValueError(
                        "There are multiple evaluation results with the same metric name "
                        f"{name}. Please make sure all metrics have different prefixes."
                    )
                metrics[name] = value
        return metrics

    def offline_evaluate(
        self, data_samples: Sequence[Any], data: Sequence[Any] | None = None, chunk_size: int = 1
    ) -> dict[str, Any]:
        """Return the metrics of existing predictions."""
        if data is not None and len(data) != len(data_samples):
            raise AssertionError(
                "data_samples and data should have the same length, got "
                f"{len(data_samples)} and {len(data)}"
            )
        for start in range(0, len(data_samples), chunk_size):
            chunk = slice(start, start + chunk_size)
            batch = None if data is None else pseudo_collate(data[chunk])
            self.process(data_samples[chunk], batch)
        return self.evaluate(len(data_samples))


def get_metric_value(indicator: str, metrics: dict[str, Any]) -> Any:
    """Return the value of a metric, whose name is given with or without its prefix."""
    matched = []
    for key in metrics:
        name = key if "/" in indicator else key.split("/")[-1]
        if indicator in (key, name):
            matched.append(key)
    if len(matched) != 1:
        problem = "matches multiple metrics" if matched else "can not match any metric in"
        raise ValueError(f'The indicator "{indicator}" {problem} {matched or list(metrics)}')
    return metrics[matched[0]]


def _to_cpu(data: Any) -> Any:
    if isinstance(data, (torch.Tensor, BaseDataElement)):
        return data.to("cpu")
    if isinstance(data, (list, tuple)):
        return type(data)(_to_cpu(item) for item in data)
    if isinstance(data, dict):
        return {key: _to_cpu(value) for key, value in data.items()}
    return data


__all__ = ["BaseMetric", "DumpResults", "Evaluator", "get_metric_value"]
__getattr__ = not_covered(__name__, __all__)
