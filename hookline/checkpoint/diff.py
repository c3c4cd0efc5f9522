"""What differs between two checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from hookline.errors import Path, dotted


def diff(a: Any, b: Any) -> list[str]:
    """One line per difference; an empty list if both hold the same, bit for bit (two NaN are the same)."""
    return list(_differences(a, b, ()))


def _differences(a: Any, b: Any, path: Path) -> Iterator[str]:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        yield from _tensor_differences(a, b, path)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        yield from (f"{dotted((*path, key))}: only in the first" for key in a if key not in b)
        yield from (f"{dotted((*path, key))}: only in the second" for key in b if key not in a)
        for key in a:
            if key in b:
                yield from _differences(a[key], b[key], (*path, key))
    elif isinstance(a, (list, tuple)) and type(a) is type(b):
        if len(a) != len(b):
            yield f"{dotted(path)}: {len(a)} items and {len(b)}"
        for index, (left, right) in enumerate(zip(a, b, strict=False)):
            yield from _differences(left, right, (*path, index))
    elif type(a) is not type(b) or (a != b and not (a != a and b != b)):
        yield f"{dotted(path)}: {_short(a)} and {_short(b)}"


def _tensor_differences(a: Tensor, b: Tensor, path: Path) -> Iterator[str]:
    if a.shape != b.shape:
        yield f"{dotted(path)}: shape {tuple(a.shape)} and {tuple(b.shape)}"
    elif a.dtype != b.dtype:
        yield f"{dotted(path)}: {a.dtype} and {b.dtype}"
    else:
        left, right = (tensor.detach().cpu().to_dense() for tensor in (a, b))
        same = torch.eq(left, right) | (torch.isnan(left) & torch.isnan(right))
        if not bool(same.all()):
            wide = torch.complex128 if left.is_complex() else torch.float64
            gap = (left.to(wide) - right.to(wide)).abs()[~same]
            yield f"{dotted(path)}: {int((~same).sum())} of {same.numel()} values differ, by up to {float(gap.max()):.3g}"


def _short(value: Any) -> str:
    text = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
