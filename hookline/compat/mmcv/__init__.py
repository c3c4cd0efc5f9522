"""The interface of MMCV 1.x for training, on Hookline's engine.

Where MMCV 1.x is installed, only its runners, hooks and checkpoints are replaced, and all other
names are the real ones. Where it is not, this package covers training only, without MMCV's image
operations and layers.
"""

from functools import partial
from importlib import import_module
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.errors import ADVICE
from hookline.compat.mmcv.replaced import begin_overlay

MMCV_VERSION = "1.7.2"  # the version with this interface and layout of checkpoints

__getattr__: Any
if begin_overlay():
    __getattr__ = partial(getattr, import_module("mmcv"))
else:
    from hookline.compat.mmcv import utils as _utils

    __version__ = MMCV_VERSION
    __getattr__ = not_covered(
        __name__,
        ["runner", "engine", "parallel", "utils"],
        advice=ADVICE,
        lazy=dict.fromkeys(_utils.__all__, _utils.__name__),
    )
