"""Check the form of a checkpoint before anything of it is used.

A checksum proves that a file is intact, not that Hookline wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.errors import HooklineError, KeyPath, Problem

MAX_DEPTH = 100  # of nested containers
MAX_CONTAINERS = 1_000_000  # shared ones count once for each place
MAX_COUNT = 2**53
MAX_REASON = 300  # characters of an error


def check_depth(checkpoint: Any, file: str) -> None:
    """Raise CheckpointError if containers are nested deeper than any state of a run is.

    Walking through a structure of a million levels would exhaust the stack. Lists that hold the
    next one twice, on 40 levels, would take forever.
    """
    level = [checkpoint]
    count = 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                below += [each for each in value.values() if isinstance(each, _CONTAINERS)]
            elif isinstance(value, (list, tuple)):
                below += [each for each in value if isinstance(each, _CONTAINERS)]
            if count + len(below) > MAX_CONTAINERS:
                raise CheckpointError(f"holds more than {MAX_CONTAINERS:,} containers", file=file)
        if not below:
            return
        count += len(below)
        level = below
    raise CheckpointError(f"nested deeper than {MAX_DEPTH} levels", file=file)


def check_structure(checkpoint: Mapping[str, Any], file: str) -> None:
    """Raise CheckpointError, with the path of each wrong part, unless a run can resume from it."""
    problems = []
    for path, fits in _FORMS.items():
        value: Any = checkpoint
        for key in path:
            value = value.get(key, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is _ABSENT:
            if path in _REQUIRED:
                problems.append(Problem("is missing", path, file=file))
        elif not fits(value):
            kind = type(value).__name__
            problems.append(Problem(f"has a wrong form ({kind})", path, file=file))
    if problems:
        raise CheckpointError(problems)


@contextmanager
def restoring(part: str, component: str | None = None) -> Iterator[None]:
    """Turn any error inside into a CheckpointError that names the part of the checkpoint."""
    try:
        yield
    except HooklineError:
        raise
    except Exception as error:
        text = (str(error).splitlines() or [""])[0][:MAX_REASON]
        message = f"the checkpoint's {part} cannot be restored: {type(error).__name__}: {text}"
        raise CheckpointError(message, component=component) from error


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number that a counter can have."""
    return type(value) is int and 0 <= value <= MAX_COUNT


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_records(value: Any) -> bool:
    return _is_mapping(value) and all(map(_is_mapping, value.values()))


def _is_groups(value: Any) -> bool:
    """Return whether a value has the names of the parameters of each group, by optimizer."""
    if not _is_mapping(value):
        return False
    groups = [names for each in value.values() for names in _as_list(each)]
    return all(isinstance(each, list) for each in (*value.values(), *groups))


def _is_frozen(value: Any) -> bool:
    parts = [value.get("initial"), value.get("saved")] if _is_mapping(value) else [None]
    return all(isinstance(part, list) for part in parts)


def _is_hyperparameters(value: Any) -> bool:
    return value is None or isinstance(value, (list, Mapping))


def _is_tensors(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Tensor) for each in value)


def _is_base(value: Any) -> bool:
    if not _is_mapping(value):
        return False
    counts = all(is_count(value.get(key)) for key in ("tensors", "bytes"))
    return counts and isinstance(value.get("sha256"), str) and _is_tensors([value.get("digests")])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_ABSENT = object()
_CONTAINERS = (Mapping, list, tuple)
_REQUIRED = {("meta",), ("meta", "iter"), ("meta", "epoch"), ("state_dict",)}
_FORMS: dict[KeyPath, Callable[[Any], bool]] = {
    ("meta",): _is_mapping,
    ("meta", "epoch"): is_count,
    ("meta", "iter"): is_count,
    ("meta", "inner_iter"): is_count,
    ("meta", "optimizer_steps"): is_count,
    ("meta", "world_size"): is_count,
    ("meta", "time"): _is_number,
    ("meta", "best"): _is_records,
    ("meta", "metrics"): _is_mapping,
    ("meta", "config"): _is_mapping,
    ("meta", "hyperparameters"): _is_hyperparameters,
    ("meta", "param_groups"): _is_groups,
    ("meta", "frozen"): _is_frozen,
    ("state_dict",): _is_mapping,
    ("ema_state_dict",): _is_mapping,
    ("base",): _is_base,
    ("hooks",): _is_mapping,
    ("objects",): _is_mapping,
    ("optimizer",): _is_mapping,
    ("events",): _is_mapping,
    ("rng",): _is_mapping,
    ("by_rank",): _is_tensors,
}
