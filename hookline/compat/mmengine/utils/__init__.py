"""`mmengine.utils`: small helpers for hooks, models and configs."""

from __future__ import annotations

import os.path as osp
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.utils.manager import ManagerMeta, ManagerMixin
from hookline.compat.mmengine.utils.modules import (
    get_object_from_string,
    import_modules_from_strings,
)
from hookline.compat.openmmlab import (
    is_list_of,
    is_seq_of,
    is_str,
    is_tuple_of,
    mkdir_or_exist,
    scandir,
)


def is_method_overridden(method: str, base_class: type, derived_class: Any) -> bool:
    """Return whether a class, or that of an instance, overrides a method of a base class."""
    derived = derived_class if isinstance(derived_class, type) else type(derived_class)
    return bool(getattr(derived, method) != getattr(base_class, method))


def has_method(obj: object, method: str) -> bool:
    return callable(getattr(obj, method, None))


def apply_to(data: Any, expr: Callable[[Any], bool], apply_func: Callable[[Any], Any]) -> Any:
    """Apply a function to the parts of a nested structure that satisfy a condition."""
    if expr(data):
        return apply_func(data)
    if isinstance(data, dict):
        return type(data)((key, apply_to(value, expr, apply_func)) for key, value in data.items())
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(apply_to(item, expr, apply_func) for item in data))
    if isinstance(data, (list, tuple)):
        return type(data)(apply_to(item, expr, apply_func) for item in data)
    return data


def check_file_exist(filename: str | Path, msg_tmpl: str = 'file "{}" does not exist') -> None:
    if not osp.isfile(filename):
        raise FileNotFoundError(msg_tmpl.format(filename))


def is_abs(path: str) -> bool:
    return osp.isabs(path) or path.startswith(("http://", "https://", "s3://"))


def slice_list(in_list: list[Any], lens: int | list[int]) -> list[list[Any]]:
    """Split a list into parts of given lengths."""
    lengths = [lens] * (len(in_list) // lens) if isinstance(lens, int) else lens
    if sum(lengths) != len(in_list):
        raise ValueError(
            f"sum of lens and list length does not match: {sum(lengths)} != {len(in_list)}"
        )
    parts = []
    start = 0
    for length in lengths:
        parts.append(in_list[start : start + length])
        start += length
    return parts


def concat_list(in_list: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(in_list))


def to_ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats a value n times, and converts a sequence to a tuple."""

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (list, tuple)):
            return tuple(value)
        return (value,) * n

    return convert


to_1tuple = to_ntuple(1)
to_2tuple = to_ntuple(2)
to_3tuple = to_ntuple(3)
to_4tuple = to_ntuple(4)


def digit_version(version_str: str, length: int = 4) -> tuple[int, ...]:
    """Return a version as a tuple that sorts as versions do: `1.10.0rc1` before `1.10.0`."""
    from packaging.version import parse

    version = parse(version_str)
    release = [*version.release, 0, 0, 0, 0][:length]
    if version.is_prerelease:
        kind, number = version.pre or ("dev", version.dev or 0)
        return (*release, {"dev": -4, "a": -3, "b": -2, "rc": -1}[kind], number)
    if version.is_postrelease and version.post is not None:
        return (*release, 1, version.post)
    return (*release, 0, 0)


def get_git_hash(fallback: str = "unknown", digits: int | None = None) -> str:
    """Return an empty string: this is not a checkout of MMEngine."""
    return ""


__all__ = [
    "ManagerMeta",
    "ManagerMixin",
    "apply_to",
    "check_file_exist",
    "concat_list",
    "digit_version",
    "get_git_hash",
    "get_object_from_string",
    "has_method",
    "import_modules_from_strings",
    "is_abs",
    "is_list_of",
    "is_method_overridden",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "mkdir_or_exist",
    "scandir",
    "slice_list",
    "to_1tuple",
    "to_2tuple",
    "to_3tuple",
    "to_4tuple",
    "to_ntuple",
]
__getattr__ = not_covered(__name__, __all__)
