"""Registries, loggers and small helpers, with the names of `mmcv.utils`."""

from typing import Any

from hookline.compat.missing import not_covered
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

__all__ = [
    "Registry",
    "build_from_cfg",
    "get_logger",
    "is_list_of",
    "is_seq_of",
    "is_str",
    "is_tuple_of",
    "mkdir_or_exist",
    "print_log",
    "scandir",
]
__getattr__: Any = not_covered(__name__, __all__)
