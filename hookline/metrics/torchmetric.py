"""torchmetrics' metrics by name, built when the first batch shows what they need to know."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hookline.errors import Problem, suggest
from hookline.signature import check_arguments, parameters

SHORT_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "f1": ("F1Score", {"average": "macro"}),  # the micro average, their default, equals the accuracy
    "precision": ("Precision", {"average": "macro"}),
    "recall": ("Recall", {"average": "macro"}),
    "auroc": ("AUROC", {}),
}

# What the shape of the first predictions tells.
FILLED_IN = ("task", "num_classes", "num_labels")


class TorchMetric:
    """A metric of torchmetrics, on the device of the predictions; what their shape tells need not be configured."""

    over_all_processes = True

    def __init__(self, cls: type, arguments: Mapping[str, Any]) -> None:
        self._cls, self._arguments = cls, dict(arguments)
        self._metric: Any = None

    def update(self, preds: Tensor, targets: Tensor) -> None:
        if self._metric is not None:
            self._metric.update(preds, targets)
            return
        self._metric = self._build(preds, targets)
        self._metric.update(preds, targets)
        if "validate_args" not in self._arguments and hasattr(self._metric, "validate_args"):
            self._metric.validate_args = False  # it is slow, and one batch shows what is wrong

    def compute(self) -> Any:
        """The metric's value, over all ranks in a distributed run; NaN if there was nothing."""
        return torch.tensor(float("nan")) if self._metric is None else self._metric.compute()

    def reset(self) -> None:
        if self._metric is not None:
            self._metric.reset()

    def _build(self, preds: Tensor, targets: Tensor) -> Any:
        known = parameters(self._cls).known
        told = {name: value for name, value in _told_by_shape(preds, targets).items() if name in known}
        arguments = {**told, **self._arguments}
        problems = check_arguments(self._cls, _without_base(arguments))
        if problems:
            what = f"predictions of shape {tuple(preds.shape)} with targets of shape {tuple(targets.shape)} do not tell"
            raise ValueError(f"{'; '.join(str(problem) for problem in problems)} ({what})")
        return self._cls(**arguments).to(preds.device)


def find_class(name: str) -> type | None:
    """The class of torchmetrics with a name, or with one of the short names."""
    return _classes().get(SHORT_NAMES[name][0] if name in SHORT_NAMES else name)


def class_names() -> list[str]:
    return sorted(_classes())


def check(cls: type, arguments: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the arguments for a class of torchmetrics."""
    params, base = parameters(cls), _base_arguments()
    known = set(params.known) | base
    strange = [name for name in arguments if name not in known]
    problems = [Problem(f"{cls.__name__}: unknown parameter {name!r}{suggest(name, set(params.known))}", (name,)) for name in strange]
    rest = {name: value for name, value in _without_base(arguments).items() if name not in strange}
    return problems + check_arguments(cls, rest, frozenset(FILLED_IN))


def _told_by_shape(preds: Tensor, targets: Tensor) -> dict[str, Any]:
    if preds.ndim == targets.ndim + 1 and preds.shape[1] > 1:
        return {"task": "multiclass", "num_classes": preds.shape[1]}
    if preds.ndim == targets.ndim == 2 and preds.shape == targets.shape and preds.shape[1] > 1:
        return {"task": "multilabel", "num_labels": preds.shape[1]}
    return {"task": "binary"} if preds.is_floating_point() else {}


@functools.cache
def _classes() -> dict[str, type]:
    from torchmetrics import Metric  # on use, because it takes long

    found: dict[str, type] = {}
    for package in ("", ".classification", ".regression", ".segmentation", ".aggregation"):
        module = importlib.import_module(f"torchmetrics{package}")
        found.update({name: value for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, Metric)})
    return {name: cls for name, cls in found.items() if cls is not Metric and not inspect.isabstract(cls)}


def _base_arguments() -> set[str]:
    """What every metric of torchmetrics takes beside its own parameters; their signatures do not name it."""
    return {
        "compute_on_cpu",
        "dist_sync_on_step",
        "process_group",
        "dist_sync_fn",
        "distributed_available_fn",
        "sync_on_compute",
        "compute_with_cache",
    }


def _without_base(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _base_arguments()}
