"""Compare two checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from hookline.errors import KeyPath, dotted

MAX_VALUE = 60  # characters of a value in a line


def diff(a: Any, b: Any) -> list[str]:
    """Return one line per difference; an empty list if both are equal bit for bit.

    NaN equals NaN.
    """
    return list(_differences(a, b, ()))


def _differences(a: Any, b: Any, path: KeyPath) -> Iterator[str]:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        yield from _tensor_differences(a, b, path)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        yield from _mapping_differences(a, b, path)
    elif isinstance(a, (list, tuple)) and type(a) is type(b):
        if len(a) != len(b):
            yield f"{dotted(path)}: {len(a)} items and {len(b)}"
        for index, (left, right) in enumerate(zip(a, b, strict=False)):
            yield from _differences(left, right, (*path, index))
    elif type(a) is not type(b) or not _is_same(a, b):
        yield f"{dotted(path)}: {_short(a)} and {_short(b)}"


def _mapping_differences(
    a: Mapping[Any, Any], b: Mapping[Any, Any], path: KeyPath
) -> Iterator[str]:
    for key in a:
        if key not in b:
            yield f"{dotted((*path, key))}: only in the first"
    for key in b:
        if key not in a:
            yield f"{dotted((*path, key))}: only in the second"
    for key in a:
        if key in b:
            yield from _differences(a[key], b[key], (*path, key))


def _tensor_differences(a: Tensor, b: Tensor, path: KeyPath) -> Iterator[str]:
    if a.shape != b.shape:
        yield f"{dotted(path)}: shape {tuple(a.shape)} and {tuple(b.shape)}"
        return
    if a.dtype != b.dtype:
        yield f"{dotted(path)}: {a.dtype} and {b.dtype}"
        return
    left = a.detach().cpu().to_dense()
    right = b.detach().cpu().to_dense()
    differs = ~(torch.eq(left, right) | (torch.isnan(left) & torch.isnan(right)))
    count = int(differs.sum())
    if count:
        wide = torch.complex128 if left.is_complex() else torch.float64
        gap = float((left.to(wide) - right.to(wide)).abs()[differs].max())
        yield f"{dotted(path)}: {count} of {left.numel()} values differ, by up to {gap:.3g}"


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
