"""Apply and describe changes of the config between a checkpoint and the resumed run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from hookline.secrets import mask_secrets

# Keys for the place and the start of a run, which do not change its result.
IGNORED_KEYS = ("work_dir", "experiment_dir", "resume", "load_from")


def hyperparameters(optimizer: Any) -> Any:
    """Return the hyperparameters of an optimizer, or of several by name, as plain values."""
    if isinstance(optimizer, Mapping):
        return {name: hyperparameters(each) for name, each in optimizer.items()}
    if optimizer is None:
        return []
    plain = (bool, int, float, str, tuple, list, type(None))
    return [
        {key: value for key, value in group.items() if key != "params" and isinstance(value, plain)}
        for group in optimizer.param_groups
    ]


def apply_changes(
    meta: Mapping[str, Any],
    optimizer: Any,
    now: Any,
    config: Mapping[str, Any],
    logger: logging.Logger,
) -> None:
    """Apply changed hyperparameters to a restored optimizer, and log all changes.

    Args:
        meta: The metadata of the checkpoint, with its hyperparameters and its config.
        optimizer: The optimizer, restored from the checkpoint, or several by name.
        now: The hyperparameters of this start.
        config: The config of this start.
        logger: The logger of the run.
    """
    for change in reapply_changes(optimizer, meta.get("hyperparameters", []), now):
        logger.warning("changed since the checkpoint, in effect from now on: %s", change)
    if meta.get("config") and config:
        changes = config_changes(meta["config"], config)
        if changes:
            logger.warning("the config differs from the checkpoint's: %s", "; ".join(changes))


def reapply_changes(optimizer: Any, then: Any, now: Any) -> list[str]:
    """Set hyperparameters that the user changed since the checkpoint; describe each change.

    Args:
        optimizer: The optimizer, restored from the checkpoint, or several by name.
        then: The hyperparameters when the run was first started.
        now: The hyperparameters of this start.
    """
    if isinstance(optimizer, Mapping):
        return [
            f"{name}.{text}"
            for name, each in optimizer.items()
            for text in reapply_changes(each, then.get(name, []), now[name])
        ]
    changes: list[str] = []
    if not isinstance(optimizer, torch.optim.Optimizer):
        return changes
    groups = zip(optimizer.param_groups, then, now, strict=False)
    for index, (group, old, new) in enumerate(groups):
        where = f" of group {index}" if len(now) > 1 else ""
        for key, value in new.items():
            if key in old and old[key] != value:
                _change(group, key, old[key], value)
                changes.append(f"{key}{where}: {old[key]} → {value}")
    return changes


def config_changes(saved: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Describe the keys that differ between two configs, as `training.epochs: 3 → 5`."""
    then = dict(_flatten(saved))
    now = dict(_flatten(mask_secrets(config)))
    changes = []
    for key in {**then, **now}:
        if then.get(key) != now.get(key) and key.partition(".")[0] not in IGNORED_KEYS:
            changes.append(f"{key}: {then.get(key, 'absent')} → {now.get(key, 'absent')}")
    return changes


def _change(group: dict[str, Any], key: str, old: Any, new: Any) -> None:
    if key != "lr":
        group[key] = new
        return
    if group["lr"] == old or not old:
        group["lr"] = new
    else:
        group["lr"] = group["lr"] * new / old  # a schedule continues from the new height
    if "initial_lr" in group:
        group["initial_lr"] = new


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)) and value:
        for index, item in enumerate(value):
            yield from _flatten(item, f"{prefix}[{index}]")
    else:
        yield prefix, value
