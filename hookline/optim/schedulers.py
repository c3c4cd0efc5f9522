"""Build and inspect scheduler objects: torch's, and others with the same methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from hookline.errors import ConfigError, Suggestion, suggest
from hookline.optim.groups import Optimizers, by_name
from hookline.registry import Registry

# Parameters that every scheduler's config may have in addition to those of its class.
COMMON = {"by_epoch": bool, "monitor": str}


def each_scheduler(schedulers: Any) -> Iterator[Any]:
    """Yield all schedulers of a single one, a list, or a mapping by the optimizers' names."""
    if isinstance(schedulers, Mapping):
        schedulers = list(schedulers.values())
    if isinstance(schedulers, (list, tuple)):
        for part in schedulers:
            yield from each_scheduler(part)
    elif schedulers is not None:
        yield schedulers


def follows_metric(scheduler: Any) -> bool:
    """Return whether a scheduler is stepped with the value of a metric."""
    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


def check_only_stepper(hook: Any, hooks: Iterable[Any]) -> None:
    """Raise ConfigError if another hook steps the schedulers too."""
    for other in hooks:
        if other is not hook and getattr(other, "steps_schedulers", False):
            message = f"{other.name} steps the schedulers too; remove one of the two"
            raise ConfigError(message, component=hook.name)


def check_unit(
    hook: str, scheduler: Any, by_epoch: bool, max_epochs: int | None, optimizer: Any
) -> None:
    """Raise ConfigError if a scheduler cannot be stepped by epochs, or by steps.

    Args:
        hook: The hook that steps it.
        scheduler: The scheduler.
        by_epoch: Whether it is stepped after each epoch, or after each optimizer step.
        max_epochs: The length of the run in epochs, if it is known.
        optimizer: The optimizer of the run, if there is one.
    """
    kind = type(scheduler).__name__
    total = getattr(scheduler, "total_steps", None)
    if by_epoch and total is not None and max_epochs is not None and total > max_epochs:
        raise ConfigError(
            f"{kind} has {total} steps, but would be stepped once in each of {max_epochs} epochs",
            component=hook,
            parameter="by_epoch",
            suggestion=Suggestion(advice="use ParamSchedulerHook(by_epoch=False)"),
        )
    if not by_epoch and optimizer is None:
        raise ConfigError(
            f"{kind} is stepped with the optimizer, and the run has none: pass optimizer=…",
            component=hook,
            parameter="by_epoch",
        )


def build_schedulers(registry: Registry[Any], config: Any, optimizers: Optimizers) -> Any:
    """Build schedulers from a config; pass objects through.

    Args:
        registry: The registry of the classes.
        config: `{type: StepLR, …}`, a list of such, or a mapping of either by the optimizers'
            names. `by_epoch` and, for a scheduler that follows a metric, `monitor` are set as
            attributes.
        optimizers: One optimizer, or several by name.
    """
    if isinstance(config, str):
        config = {"type": config}
    if isinstance(config, (list, tuple)):
        return [build_schedulers(registry, part, optimizers) for part in config]
    if not isinstance(config, Mapping):
        return config
    if "type" not in config and isinstance(optimizers, Mapping):
        return _build_by_name(registry, config, optimizers)
    names = list(by_name(optimizers))
    if len(names) != 1:
        message = "several optimizers need a mapping of schedulers by their names"
        suggestion = Suggestion(known=tuple(names))
        raise ConfigError(message, component="scheduler", suggestion=suggestion)
    optimizer = by_name(optimizers)[names[0]]
    scheduler = registry.build(scheduler_arguments(config), optimizer=optimizer)
    for key in COMMON:
        if key in config:
            setattr(scheduler, key, config[key])
    return scheduler


def _build_by_name(
    registry: Registry[Any],
    config: Mapping[str, Any],
    optimizers: Mapping[str, torch.optim.Optimizer],
) -> dict[str, Any]:
    schedulers = {}
    for name, part in config.items():
        if name not in optimizers:
            message = f"unknown optimizer {name!r}"
            suggestion = suggest(name, optimizers)
            raise ConfigError(message, component="scheduler", suggestion=suggestion)
        schedulers[name] = build_schedulers(registry, part, optimizers[name])
    return schedulers


def scheduler_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a scheduler's config that its class takes."""
    return {key: value for key, value in config.items() if key not in COMMON}
