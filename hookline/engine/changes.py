"""What a user changed between two parts of a run: it takes effect, and it is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from hookline.secrets import mask_secrets

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Groups = list[dict[str, Any]]
NOT_A_CHANGE = ("work_dir", "experiment_dir", "resume", "load_from")  # where a run lies and how it was started


def configured(optimizer: Any) -> Any:
    """The hyperparameters of an optimizer (or of several by name) as plain values, group by group."""
    if isinstance(optimizer, Mapping):
        return {name: configured(each) for name, each in optimizer.items()}
    if optimizer is None:
        return []
    plain = (bool, int, float, str, tuple, list, type(None))
    return [
        {key: value for key, value in group.items() if key != "params" and isinstance(value, plain)} for group in optimizer.param_groups
    ]


def keep_changes(optimizer: Any, then: Any, now: Any) -> list[str]:
    """Put hyperparameters that were configured otherwise than at the first start into a restored optimizer; what they were."""
    if isinstance(optimizer, Mapping):
        return [f"{name}.{text}" for name, each in optimizer.items() for text in keep_changes(each, then.get(name, []), now[name])]
    said = []
    if isinstance(optimizer, torch.optim.Optimizer):
        for index, (group, old, new) in enumerate(zip(optimizer.param_groups, then, now, strict=False)):
            for key, value in new.items():
                if key in old and old[key] != value:
                    _change(group, key, old[key], value)
                    said.append(f"{key}{f' of group {index}' if len(now) > 1 else ''}: {old[key]} → {value}")
    return said


def _change(group: dict[str, Any], key: str, old: Any, new: Any) -> None:
    if key == "lr":
        group["lr"] = new if group["lr"] == old or not old else group["lr"] * new / old  # a schedule goes on, from the new height
        if "initial_lr" in group:
            group["initial_lr"] = new
    else:
        group[key] = new


def config_changes(runner: BaseRunner, saved: Mapping[str, Any]) -> list[str]:
    """The keys of the config that differ from the checkpoint's, as `training.epochs: 3 → 5`."""
    then, now = dict(_flat(saved)), dict(_flat(mask_secrets(runner.config)))
    keys = [key for key in {**then, **now} if then.get(key) != now.get(key) and key.split(".")[0] not in NOT_A_CHANGE]
    return [f"{key}: {then.get(key, 'absent')} → {now.get(key, 'absent')}" for key in keys]


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)) and value:
        for index, item in enumerate(value):
            yield from _flat(item, f"{prefix}[{index}]")
    else:
        yield prefix, value
