"""Build metrics from names, mappings, functions and objects."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hookline.errors import ConfigError, KeyPath, Problem, Suggestion, suggest
from hookline.imports import CALLED_LIBRARIES, check_origin, import_by_path
from hookline.metrics import torchmetric
from hookline.metrics.base import METRICS, Metric
from hookline.metrics.means import Mean
from hookline.metrics.torchmetric import SHORT_NAMES, TorchMetric
from hookline.signature import check_arguments

METHODS = ("update", "compute", "reset")


def build_metric(config: Any) -> Metric:
    """Build one metric.

    Args:
        config: A name (`accuracy`, `top5`, `MulticlassF1Score`), a dotted path, a mapping
            `{type: name, parameters…}`, a metric class, a metric, or a function
            `(preds, targets) -> value`, which becomes the mean of its values over all samples.
    """
    if isinstance(config, (str, Mapping)):
        problems = check_metric(config)
        if problems:
            raise ConfigError(problems)
        return _build(*_split(config))
    if isinstance(config, type):
        return _instance(config, {})
    if isinstance(config, Metric):
        return config
    if callable(config):
        return Mean(config)
    message = (
        "a metric must be a name, a mapping with 'type', a function, or an object with update, "
        "compute and reset"
    )
    raise ConfigError(message, value=config)


def build_metrics(
    configs: Sequence[Any] | Mapping[str, Any], path: KeyPath = ("metrics",)
) -> dict[str, Metric]:
    """Build metrics by name.

    Args:
        configs: Metrics by name, or a list of them; in a list the name is that of the mapping
            or of the metric itself.
        path: The path of the metrics in error messages.
    """
    if isinstance(configs, Mapping):
        if isinstance(configs.get("type"), str):
            message = "a mapping has metrics by name, and this is one metric"
            advice = Suggestion(advice="pass a list with it")
            raise ConfigError(Problem(message, path, value=configs, suggestion=advice))
        return {name: _build_at(config, (*path, name)) for name, config in configs.items()}
    metrics: dict[str, Metric] = {}
    for index, config in enumerate(configs):
        name = _name(config)
        if name in metrics:
            message = f"two metrics are named {name!r}"
            suggestion = _suggest_renaming(config)
            problem = Problem(message, (*path, index), parameter="name", suggestion=suggestion)
            raise ConfigError(problem)
        metrics[name] = _build_at(config, (*path, index))
    return metrics


def check_metric(config: Any) -> list[Problem]:
    """Return the problems of a metric in a config, without building it.

    torchmetrics is imported only for its own metrics.
    """
    if not isinstance(config, (str, Mapping)):
        return []
    if isinstance(config, Mapping) and not isinstance(config.get("type"), str):
        return [Problem("missing 'type': the name of a metric", parameter="type")]
    name, arguments = _split(config)
    try:
        function = _find_function(name)
        cls = _find(name) if function is None else None
    except ConfigError as error:
        path: KeyPath = () if isinstance(config, str) else ("type",)
        return [replace(problem, path=path) for problem in error.problems]
    if cls is None:
        return [
            Problem(f"{name!r} is a function, which has no parameters here", (key,), parameter=key)
            for key in arguments
        ]
    if _is_torchmetric(cls):
        return torchmetric.check(cls, arguments)
    return check_arguments(cls, arguments)


def known_metrics() -> list[str]:
    """Return the names of all metrics, those of torchmetrics included."""
    return sorted({*METRICS.names(), "top5", *SHORT_NAMES, *torchmetric.class_names()})


def _build_at(config: Any, path: KeyPath) -> Metric:
    try:
        return build_metric(config)
    except ConfigError as error:
        raise ConfigError([problem.below(*path) for problem in error.problems]) from error
    except (TypeError, ValueError) as error:  # The constructor rejects a value.
        raise ConfigError(Problem(str(error), path)) from error


def _suggest_renaming(config: Any) -> Suggestion:
    if isinstance(config, (str, Mapping)):
        kind = config if isinstance(config, str) else config.get("type")
        advice = f"give one of them another 'name', as in {{type: {kind}, name: …}}"
    else:
        advice = "pass them as a dict with names of your choice"
    return Suggestion(advice=advice)


def _split(config: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a metric's name and parameters; `top5` is accuracy with `top_k: 5`."""
    if isinstance(config, str):
        config = {"type": config}
    name = config["type"]
    arguments = {str(key): value for key, value in config.items() if key not in ("type", "name")}
    top = re.fullmatch(r"top_?([1-9]\d*)", name)
    if top is None or name in METRICS:
        return name, arguments
    return "accuracy", {"top_k": int(top[1]), **arguments}


def _build(name: str, arguments: dict[str, Any]) -> Metric:
    function = _find_function(name)
    if function is not None:
        return Mean(function)
    defaults = SHORT_NAMES[name][1] if name in SHORT_NAMES and name not in METRICS else {}
    return _instance(_find(name), {**defaults, **arguments})


def _instance(cls: type, arguments: dict[str, Any]) -> Metric:
    missing = [method for method in METHODS if not callable(getattr(cls, method, None))]
    if missing:
        message = f"the class {cls.__name__} is no metric: it has no {', '.join(missing)}"
        advice = "pass an object of it, if that is a function of predictions and targets"
        raise ConfigError(message, suggestion=Suggestion(advice=advice))
    metric: Metric = TorchMetric(cls, arguments) if _is_torchmetric(cls) else cls(**arguments)
    return metric


def _find(name: str) -> type:
    """Return the class of a registered name, a name of torchmetrics, or a dotted path."""
    if name in METRICS or "." in name:
        return METRICS.get(name)
    cls = torchmetric.find_class(name)
    if cls is None:
        suggestion = suggest(name, known_metrics())
        message = f"unknown metric {name!r}"
        raise ConfigError(message, path=("type",), parameter="type", suggestion=suggestion)
    return cls


def _find_function(name: str) -> Callable[..., Any] | None:
    """Return the function that a dotted path names; None if it names something else."""
    if name in METRICS or "." not in name:
        return None
    try:
        found = import_by_path(name, "metric", callable)
    except ConfigError:
        return None  # `_find` reports it.
    if not inspect.isfunction(found):
        return None
    check_origin(found, name, CALLED_LIBRARIES)
    return found


def _is_torchmetric(cls: type) -> bool:
    torchmetrics = sys.modules.get("torchmetrics")  # Imported, if a class of it is here.
    return torchmetrics is not None and issubclass(cls, torchmetrics.Metric)


def _name(config: Any) -> str:
    """Return the name of a metric: the given or registered one, or that of its class."""
    if isinstance(config, Mapping):
        return str(config.get("name") or _name(str(config.get("type"))))
    if isinstance(config, str):
        return config if config in METRICS else config.rpartition(".")[2]
    return str(getattr(config, "__name__", None) or type(config).__name__)
