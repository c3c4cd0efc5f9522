"""`mmengine.runner`: the runner, its loops, and checkpoints."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.files import find_latest_checkpoint
from hookline.compat.mmengine.runner.log_processor import LogProcessor
from hookline.compat.mmengine.runner.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookline.compat.mmengine.runner.priority import Priority, get_priority
from hookline.compat.mmengine.runner.runner import Runner

__all__ = [
    "BaseLoop",
    "EpochBasedTrainLoop",
    "IterBasedTrainLoop",
    "LogProcessor",
    "Priority",
    "Runner",
    "TestLoop",
    "ValLoop",
    "find_latest_checkpoint",
    "get_priority",
]
__getattr__ = not_covered(__name__, __all__, advice=ADVICE)
