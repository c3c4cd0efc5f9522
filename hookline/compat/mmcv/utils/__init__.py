"""Registries, loggers and small helpers with the names of `mmcv.utils`, without MMCV."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.errors import ADVICE
from hookline.compat.mmcv.utils.logging import get_logger, print_log
from hookline.compat.mmcv.utils.registry import Registry, build_from_cfg
from hookline.compat.openmmlab import (
    is_list_of,
    is_seq_of,
    is_str,
    is_tuple_of,
    mkdir_or_exist,
    scandir,
)


def is_filepath(x: Any) -> bool:
    return isinstance(x, (str, Path))


def iter_cast(
    inputs: Iterable[Any], dst_type: Callable[[Any], Any], return_type: Any = None
) -> Any:
    """Convert each item; return an iterator, or a `return_type` of the items."""
    items = map(dst_type, inputs)
    return items if return_type is None else return_type(items)


def list_cast(inputs: Iterable[Any], dst_type: Callable[[Any], Any]) -> Any:
    return iter_cast(inputs, dst_type, list)


def tuple_cast(inputs: Iterable[Any], dst_type: Callable[[Any], Any]) -> Any:
    return iter_cast(inputs, dst_type, tuple)


__all__ = [
    "Registry",
    "build_from_cfg",
    "get_logger",
    "is_filepath",
    "is_list_of",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "iter_cast",
    "list_cast",
    "mkdir_or_exist",
    "print_log",
    "scandir",
    "tuple_cast",
]

__getattr__: Any = not_covered(__name__, __all__, advice=ADVICE)
