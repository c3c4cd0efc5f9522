"""Metrics of torchmetrics by name, built when the first batch shows the number of classes."""

from __future__ import annotations

import functools
import importlib
import inspect
import typing
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hookline.errors import ConfigError, Problem, Suggestion, suggest
from hookline.signature import check_arguments, parameters

# torchmetrics' default is the micro average, which equals the accuracy.
SHORT_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "f1": ("F1Score", {"average": "macro"}),
    "precision": ("Precision", {"average": "macro"}),
    "recall": ("Recall", {"average": "macro"}),
    "auroc": ("AUROC", {}),
}

# Arguments that follow from the shape of the first predictions.
FROM_SHAPE = ("task", "num_classes", "num_labels")

# Arguments of torchmetrics.Metric, which the signatures of its subclasses do not list.
BASE_ARGUMENTS = frozenset(
    [
        "compute_on_cpu",
        "dist_sync_on_step",
        "process_group",
        "dist_sync_fn",
        "distributed_available_fn",
        "sync_on_compute",
        "compute_with_cache",
    ]
)


class TorchMetric:
    """A metric of torchmetrics, built on the device of the first predictions.

    Arguments that follow from the shape of the predictions need no configuration.
    """

    over_all_processes = True

    def __init__(self, cls: type, arguments: Mapping[str, Any]) -> None:
        self._cls = cls
        self._arguments = dict(arguments)
        self._metric: Any = None

    def update(self, preds: Tensor, targets: Tensor) -> None:
        """Add one batch.

        Raises:
            ConfigError: If the first batch does not fit the metric.
        """
        if self._metric is not None:
            self._metric.update(preds, targets)
            return
        metric = self._build(preds, targets)
        try:
            metric.update(preds, targets)
        except torch.OutOfMemoryError:
            raise
        except (ValueError, RuntimeError) as error:
            raise ConfigError(str(error), component=self._cls.__name__) from error
        if "validate_args" not in self._arguments and hasattr(metric, "validate_args"):
            metric.validate_args = False  # It is slow, and one batch shows a wrong argument.
        self._metric = metric

    def compute(self) -> Any:
        """Return the value, over all ranks in a distributed run; NaN if there was no batch."""
        if self._metric is None:
            return torch.tensor(float("nan"))
        return self._metric.compute()

    def reset(self) -> None:
        if self._metric is not None:
            self._metric.reset()

    def _build(self, preds: Tensor, targets: Tensor) -> Any:
        known = parameters(self._cls).known
        inferred = _arguments_from_shape(preds, targets)
        inferred = {name: value for name, value in inferred.items() if name in known}
        arguments = {**inferred, **self._arguments}
        problems = check_arguments(self._cls, _without_base(arguments))
        if problems:
            shapes = f"{tuple(preds.shape)} and targets of shape {tuple(targets.shape)}"
            advice = f"predictions of shape {shapes} do not determine it, so set it"
            suggestion = Suggestion(advice=advice)
            raise ConfigError([replace(each, suggestion=suggestion) for each in problems])
        return self._cls(**arguments).to(preds.device)


def find_class(name: str) -> type | None:
    """Return the class of torchmetrics with this name or short name, or None."""
    if name in SHORT_NAMES:
        name = SHORT_NAMES[name][0]
    return _classes().get(name)


def class_names() -> list[str]:
    """Return the names of all metrics of torchmetrics."""
    return sorted(_classes())


def check(cls: type, arguments: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of the arguments for a class of torchmetrics."""
    known = parameters(cls).known
    problems = []
    rest = {}
    for name, value in _without_base(arguments).items():
        if name in known:
            rest[name] = value
            continue
        suggestion = suggest(name, known)
        about: dict[str, Any] = {"component": cls.__name__, "parameter": name}
        message = f"unknown parameter {name!r}"
        problems.append(Problem(message, (name,), suggestion=suggestion, **about))
    return problems + check_arguments(cls, rest, frozenset(FROM_SHAPE))


def _arguments_from_shape(preds: Tensor, targets: Tensor) -> dict[str, Any]:
    if preds.ndim == targets.ndim + 1 and preds.shape[1] > 1:
        return {"task": "multiclass", "num_classes": preds.shape[1]}
    if preds.ndim == targets.ndim == 2 and preds.shape == targets.shape and preds.shape[1] > 1:
        return {"task": "multilabel", "num_labels": preds.shape[1]}
    return {"task": "binary"} if preds.is_floating_point() else {}


@functools.cache
def _classes() -> dict[str, type]:
    from torchmetrics import Metric  # Imported on use: it takes seconds.

    found: dict[str, type] = {}
    for package in ("", ".classification", ".regression", ".segmentation", ".aggregation"):
        module = importlib.import_module(f"torchmetrics{package}")
        for name, value in vars(module).items():
            # In Python 3.10, an alias such as list[int] is an instance of type, too.
            is_class = isinstance(value, type) and typing.get_origin(value) is None
            is_metric = is_class and issubclass(value, Metric)
            if is_metric and value is not Metric and not inspect.isabstract(value):
                found[name] = value
    return found


def _without_base(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in BASE_ARGUMENTS}
