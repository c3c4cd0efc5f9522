"""`mmengine.evaluator`: metrics, and the evaluator that runs them."""

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
    """`process` puts something into `results` for each batch, `compute_metrics` makes metrics of them at the end."""

    default_prefix: str | None = None

    def __init__(self, collect_device: str = "cpu", prefix: str | None = None, collect_dir: str | None = None) -> None:
        if collect_dir is not None and collect_device != "cpu":
            raise ValueError("`collect_dir` could only be configured when `collect_device='cpu'`")
        self._dataset_meta: dict[str, Any] | None = None
        self.collect_device, self.collect_dir = collect_device, collect_dir
        self.results: list[Any] = []
        self.prefix = prefix or self.default_prefix
        if self.prefix is None:
            print_log(f"The prefix is not set in metric class {type(self).__name__}.", "current", logging.WARNING)

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
        """The metrics over `size` samples, of all processes; `results` is empty afterwards."""
        if not self.results:
            print_log(f"{type(self).__name__} got empty `self.results`: does `process` add to them?", "current", logging.WARNING)
        results = collect_results(self.results, size, self.collect_device, tmpdir=self.collect_dir)
        metrics: list[Any] = [None]
        if is_main_process():
            computed = self.compute_metrics(_to_cpu(results))
            metrics = [{f"{self.prefix}/{key}": value for key, value in computed.items()} if self.prefix else computed]
        broadcast_object_list(metrics)
        self.results.clear()
        return metrics[0]  # type: ignore[no-any-return]


@METRICS.register_module()
class DumpResults(BaseMetric):
    """Writes all predictions to a pickle."""

    def __init__(self, out_file_path: str, collect_device: str = "cpu", collect_dir: str | None = None) -> None:
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
    """Several metrics, fed with the same predictions."""

    def __init__(self, metrics: Any) -> None:
        self._dataset_meta: dict[str, Any] | None = None
        given = metrics if isinstance(metrics, Sequence) else [metrics]
        self.metrics: list[BaseMetric] = [METRICS.build(each) if isinstance(each, dict) else each for each in given]

    @property
    def dataset_meta(self) -> dict[str, Any] | None:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: dict[str, Any]) -> None:
        self._dataset_meta = dataset_meta
        for metric in self.metrics:
            metric.dataset_meta = dataset_meta

    def process(self, data_samples: Sequence[Any], data_batch: Any = None) -> None:
        samples = [sample.to_dict() if isinstance(sample, BaseDataElement) else sample for sample in data_samples]
        for metric in self.metrics:
            metric.process(data_batch, samples)

    def evaluate(self, size: int) -> dict[str, Any]:
        metrics: dict[str, Any] = {}
        for metric in self.metrics:
            for name, value in metric.evaluate(size).items():
                if name in metrics:
                    raise ValueError(f"There are multiple evaluation results with the same metric name {name}: give them prefixes")
                metrics[name] = value
        return metrics

    def offline_evaluate(self, data_samples: Sequence[Any], data: Sequence[Any] | None = None, chunk_size: int = 1) -> dict[str, Any]:
        """The metrics of predictions that are there already."""
        if data is not None and len(data) != len(data_samples):
            raise AssertionError(f"data_samples and data should have the same length, got {len(data_samples)} and {len(data)}")
        for start in range(0, len(data_samples), chunk_size):
            chunk = slice(start, start + chunk_size)
            self.process(data_samples[chunk], None if data is None else pseudo_collate(data[chunk]))
        return self.evaluate(len(data_samples))


def get_metric_value(indicator: str, metrics: dict[str, Any]) -> Any:
    """The value of a metric given with or without its prefix."""
    matched = [key for key in metrics if key == indicator or ("/" not in indicator and key.split("/")[-1] == indicator)]
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
