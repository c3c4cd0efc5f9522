"""Scheduler objects: those of `torch.optim.lr_scheduler`, and any others that have `step` and `state_dict`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from hookline.errors import ConfigError, suggest
from hookline.optim.groups import Optimizers, by_name
from hookline.registry import Registry


def each_scheduler(schedulers: Any) -> Iterator[Any]:
    """All schedulers of one, a list, or a mapping of optimizers' names to one or a list."""
    if isinstance(schedulers, Mapping):
        schedulers = list(schedulers.values())
    if isinstance(schedulers, (list, tuple)):
        for part in schedulers:
            yield from each_scheduler(part)
    elif schedulers is not None:
        yield schedulers


def follows_metric(scheduler: Any) -> bool:
    """Whether a scheduler is stepped with the value of a metric."""
    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


def check_only_stepper(hook: Any, hooks: Iterable[Any]) -> None:
    """ConfigError if another hook steps the schedulers too."""
    rival = next((other.name for other in hooks if other is not hook and getattr(other, "steps_schedulers", False)), None)
    if rival is not None:
        raise ConfigError(f"{hook.name} and {rival} both step the schedulers: remove one")


def build_schedulers(registry: Registry[Any], config: Any, optimizers: Optimizers) -> Any:
    """Schedulers from `{type: StepLR, …}`, a list of such, or a mapping of them by the optimizers' names.

    Besides what the class takes a config may have `by_epoch`, and `monitor` for one that follows a metric.
    """
    if isinstance(config, str):
        config = {"type": config}
    if isinstance(config, (list, tuple)):
        return [build_schedulers(registry, part, optimizers) for part in config]
    if not isinstance(config, Mapping):
        return config
    if "type" not in config and isinstance(optimizers, Mapping):
        unknown = next((name for name in config if name not in optimizers), None)
        if unknown is not None:
            raise ConfigError(f"scheduler: there is no optimizer {unknown!r}{suggest(unknown, optimizers)}")
        return {name: build_schedulers(registry, part, optimizers[name]) for name, part in config.items()}
    if len(by_name(optimizers)) != 1:
        raise ConfigError(f"scheduler: say which optimizer it is for, as a mapping of {', '.join(by_name(optimizers))}")
    scheduler = registry.build(scheduler_arguments(config), optimizer=next(iter(by_name(optimizers).values())))
    for key in COMMON:
        if key in config:
            setattr(scheduler, key, config[key])
    return scheduler


COMMON = {"by_epoch": bool, "monitor": str}  # what every scheduler can be given, besides its own parameters


def scheduler_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a scheduler's config that goes to its class."""
    return {key: value for key, value in config.items() if key not in COMMON}
