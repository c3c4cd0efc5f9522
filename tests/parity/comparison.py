"""Compare what a hook did in two hosts."""

from __future__ import annotations

import math
import re
from typing import Any

import torch

from tests.parity.observation import Observation

# Names of scalars and of state that hold times, memory or random names: only their positions count.
MEASURED = re.compile(r"(time|data_time|eta|seconds|run_id)$|(time|throughput|memory|system)/")
# Written by a Runner or by the host itself, and not by the hook.
NOT_BY_THE_HOOK = re.compile(r"hook_costs\.json|\.hookline\.lock|\d{8}_\d{6}(\.py|/.*\.log)")
# Parts of file names that differ from run to run.
VARYING = re.compile(r"run__[^/]+|\d{8}_\d{6}|[0-9a-f]{12,}|\d{10,}[\d._-]*|tfevents\..*")


def find_differences(
    here: Observation, there: Observation, tolerance: float = 0.0
) -> dict[str, tuple[Any, Any]]:
    """Return the fields that differ, such as `calls.after_epoch`, with both values.

    Args:
        here: The observation in a Runner.
        there: The observation in another host.
        tolerance: How much numbers may differ, relative to 1 or to their size.
    """
    if here.refused != there.refused:
        return {"refused": (here.refused, there.refused)}
    one = _flatten(here)
    other = _flatten(there)
    found = {}
    for name in sorted({*one, *other}):
        pair = one.get(name), other.get(name)
        if not _is_same(*pair, tolerance):
            found[name] = pair
    return found


def _flatten(observation: Observation) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for field, value in vars(observation).items():
        if field == "sites":
            continue
        if not isinstance(value, dict):
            flat[field] = value
            continue
        for key, each in value.items():
            flat[f"{field}.{key}"] = _positions(each) if MEASURED.match(key) else each
    names = [name for name in observation.files if not NOT_BY_THE_HOOK.fullmatch(name)]
    flat["files"] = sorted(VARYING.sub("#", name) for name in names)
    return {name: value for name, value in flat.items() if not name.startswith("scalars.system/")}


def _positions(measured: Any) -> Any:
    """Return where values were measured, without the values."""
    if isinstance(measured, list):
        return [position for _, *position in measured]
    return type(measured).__name__


def _is_same(one: Any, other: Any, tolerance: float) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _is_same(one[key], other[key], tolerance) for key in one
        )
    if isinstance(one, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_is_same(*pair, tolerance) for pair in pairs)
    if isinstance(one, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return bool(one == other)
