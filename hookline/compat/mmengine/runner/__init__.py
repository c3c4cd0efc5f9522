"""`mmengine.runner`: the runner, its loops, and checkpoints."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.runner.amp import autocast
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.checkpoint import (
    CheckpointLoader,
    find_latest_checkpoint,
    get_state_dict,
    load_checkpoint,
    load_state_dict,
    save_checkpoint,
    weights_to_cpu,
)
from hookline.compat.mmengine.runner.log_processor import LogProcessor
from hookline.compat.mmengine.runner.loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    TestLoop,
    ValLoop,
)
from hookline.compat.mmengine.runner.priority import Priority, get_priority
from hookline.compat.mmengine.runner.runner import Runner
from hookline.compat.mmengine.runner.utils import set_random_seed

__all__ = [
    "BaseLoop",
    "CheckpointLoader",
    "EpochBasedTrainLoop",
    "IterBasedTrainLoop",
    "LogProcessor",
    "Priority",
    "Runner",
    "TestLoop",
    "ValLoop",
    "autocast",
    "find_latest_checkpoint",
    "get_priority",
    "get_state_dict",
    "load_checkpoint",
    "load_state_dict",
    "save_checkpoint",
    "set_random_seed",
    "weights_to_cpu",
]
__getattr__ = not_covered(
    __name__,
    __all__,
    {"FlexibleRunner": "strategies are not covered; use Runner with launcher='pytorch'"},
)
