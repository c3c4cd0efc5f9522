"""Metrics from what a config or a caller gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hookline.errors import ConfigError, Path, Problem, suggest
from hookline.metrics import torchmetric
from hookline.metrics.base import METRICS, Metric
from hookline.metrics.means import Mean
from hookline.metrics.torchmetric import SHORT_NAMES, TorchMetric
from hookline.signature import check_arguments


def build_metric(config: Any) -> Metric:
    """A metric from a name (`accuracy`, `top5`, `MulticlassF1Score`), `{type: name, parameters…}`, a function or an instance.

    A function `(preds, targets) -> value` becomes the mean of its values, weighted by samples.
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
    raise ConfigError(f"a metric is a name, a mapping with 'type', a function or an object with update, compute and reset; got {config!r}")


def build_metrics(configs: Sequence[Any] | Mapping[str, Any], path: Path = ("metrics",)) -> dict[str, Metric]:
    """Metrics by name; in a list, the name is `name` in a mapping, or else that of the metric. `path` is what errors call them."""
    if isinstance(configs, Mapping):
        return {name: _built(config, (*path, name)) for name, config in configs.items()}
    metrics: dict[str, Metric] = {}
    for index, config in enumerate(configs):
        name = _name(config)
        if name in metrics:
            raise ConfigError(Problem(f"two metrics are called {name!r}; {_renamed(config)}", (*path, index)))
        metrics[name] = _built(config, (*path, index))
    return metrics


def _built(config: Any, path: Path) -> Metric:
    try:
        return build_metric(config)
    except ConfigError as error:
        raise ConfigError([problem.below(*path) for problem in error.problems]) from error
    except (TypeError, ValueError) as error:  # a value that only the class itself can judge
        raise ConfigError(Problem(str(error), path)) from error


def _renamed(config: Any) -> str:
    """What to do about a name that another metric has."""
    if isinstance(config, (str, Mapping)):
        kind = config if isinstance(config, str) else config.get("type")
        return f"give one of them another 'name', as in {{type: {kind}, name: …}}"
    return "pass them as a dict, by names of your choice"


def check_metric(config: Any) -> list[Problem]:
    """What is wrong with a metric of a config, without building it; torchmetrics is imported only for its own metrics."""
    if isinstance(config, Mapping) and not isinstance(config.get("type"), str):
        return [Problem("missing 'type': the name of a metric")]
    if not isinstance(config, (str, Mapping)):
        return []
    name, arguments = _split(config)
    try:
        cls = _find(name)
    except ConfigError as error:
        return [Problem(problem.message, () if isinstance(config, str) else ("type",)) for problem in error.problems]
    return check_arguments(cls, arguments) if not _is_torchmetric(cls) else torchmetric.check(cls, arguments)


def known_metrics() -> list[str]:
    """All names of metrics, those of torchmetrics included."""
    return sorted({*METRICS.names(), "top5", *SHORT_NAMES, *torchmetric.class_names()})


def _split(config: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A metric's name and parameters; `top5` is the accuracy with `top_k: 5`."""
    if isinstance(config, str):
        config = {"type": config}
    name = config["type"]
    arguments = {str(key): value for key, value in config.items() if key not in ("type", "name")}
    top = re.fullmatch(r"top_?([1-9]\d*)", name)
    return (name, arguments) if top is None or name in METRICS else ("accuracy", {"top_k": int(top[1]), **arguments})


def _build(name: str, arguments: dict[str, Any]) -> Metric:
    defaults = SHORT_NAMES[name][1] if name in SHORT_NAMES and name not in METRICS else {}
    return _instance(_find(name), {**defaults, **arguments})


def _instance(cls: type, arguments: dict[str, Any]) -> Metric:
    metric: Metric = TorchMetric(cls, arguments) if _is_torchmetric(cls) else cls(**arguments)
    return metric


def _find(name: str) -> type:
    """The class of a name: registered ones first, then torchmetrics', then a dotted path."""
    if name in METRICS:
        return METRICS.get(name)
    cls = torchmetric.find_class(name) if "." not in name else METRICS.get(name)
    if cls is None:
        raise ConfigError(Problem(f"unknown metric {name!r}{suggest(name, known_metrics())}", ("type",)))
    return cls


def _is_torchmetric(cls: type) -> bool:
    return any(base.__module__ == "torchmetrics.metric" for base in cls.__mro__)


def _name(config: Any) -> str:
    """What a metric is called: what it was told, or as it is registered, or, of one by its dotted path, its own name."""
    if isinstance(config, Mapping):
        return str(config.get("name") or _name(str(config.get("type"))))
    if isinstance(config, str):
        return config if config in METRICS else config.rpartition(".")[2]
    return str(getattr(config, "__name__", None) or type(config).__name__)
