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
# Attributes of torch's schedulers with the steps that they last.
LENGTHS = ("T_max", "total_iters")


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


def find_doubts(
    scheduler: Any,
    by_epoch: bool,
    max_epochs: int | None,
    optimizers: Optimizers | None,
    max_steps: int | None = None,
) -> Iterator[str]:
    """Yield warnings about a scheduler of another optimizer, or one of another length than the run.

    Args:
        scheduler: The scheduler.
        by_epoch: Whether it is stepped after each epoch.
        max_epochs: The length of the run in epochs, if it is known.
        optimizers: Those of the run.
        max_steps: The length of the run in optimizer steps, if it is known.
    """
    kind = type(scheduler).__name__
    changed = getattr(scheduler, "optimizer", None)
    if changed is not None and all(each is not changed for each in by_name(optimizers).values()):
        yield f"{kind} belongs to another optimizer than the run's, whose rates it does not change"
    for name in LENGTHS:
        length = getattr(scheduler, name, None)
        if by_epoch and max_epochs is not None and length is not None and length > max_epochs:
            yield (
                f"{kind} with {name}={length} is stepped only {max_epochs} times, after each "
                f"epoch; if {name} counts optimizer steps, use ParamSchedulerHook(by_epoch=False)"
            )
    if by_epoch or max_steps is None:
        return
    for name in (*LENGTHS, "total_steps"):
        length = getattr(scheduler, name, None)
        if length is not None and length > max_steps:
            yield (
                f"{kind} with {name}={length} is stepped only {max_steps} times, once for each "
                "optimizer step of the run"
            )
    total = getattr(scheduler, "total_steps", None)
    if total is not None and total < max_steps:
        yield (
            f"{kind} raises an error after its {total} steps, and the run has {max_steps} "
            f"optimizer steps: set total_steps={max_steps}"
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
