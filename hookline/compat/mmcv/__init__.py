"""The interface of MMCV 1.x for training, on Hookline's engine.

MMCV's image operations and layers are not covered.
"""

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.runner.checkpointer import MMCV_VERSION as __version__
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


CONFIG = "hookline.compat.mmengine.config"  # MMEngine's configs are those of MMCV

__getattr__ = not_covered(
    __name__,
    [*__all__, "runner", "engine", "parallel", "utils"],
    instead={"ops": "only training is covered, not image operations"},
    lazy={"Config": CONFIG, "ConfigDict": CONFIG, "DictAction": CONFIG},
)
