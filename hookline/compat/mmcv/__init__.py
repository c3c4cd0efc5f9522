"""The interface of MMCV 1.x, as far as training goes, on Hookline's engine. Its image operations and layers are not covered."""

import importlib
import sys
import types

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.runner.saving import MMCV_VERSION as __version__
from hookline.compat.mmcv.utils import (
    Registry,
    build_from_cfg,
    get_logger,
    is_list_of,
    is_seq_of,
    is_str,
    is_tuple_of,
    mkdir_or_exist,
    print_log,
    scandir,
)

__all__ = [
    "Registry",
    "__version__",
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


class _Package(types.ModuleType):
    """Configs are MMEngine's, which grew out of MMCV's; that package is imported when one is asked for."""

    Config = property(lambda self: importlib.import_module("hookline.compat.mmengine.config").Config)
    ConfigDict = property(lambda self: importlib.import_module("hookline.compat.mmengine.config").ConfigDict)
    DictAction = property(lambda self: importlib.import_module("hookline.compat.mmengine.config").DictAction)


sys.modules[__name__].__class__ = _Package

__getattr__ = not_covered(
    __name__,
    [*__all__, "Config", "ConfigDict", "DictAction", "runner", "engine", "parallel", "utils"],
    {"ops": "only training is covered, not image operations"},
)
