"""The hooks, event storage and writers of Pet; `PetHooks` runs its hooks in a Hookline run."""

from hookline.compat.missing import not_covered
from hookline.compat.pet.adapter import PetHooks
from hookline.compat.pet.lib.utils.events import (
    CommonMetricPrinter,
    EventStorage,
    EventWriter,
    HistoryBuffer,
    JSONWriter,
    TensorboardXWriter,
    get_event_storage,
)
from hookline.compat.pet.lib.utils.logger import (
    IterationTimer,
    LRScheduler,
    PeriodicWriter,
    PreciseBN,
    TestHook,
    TrainHook,
)
from hookline.compat.pet.lib.utils.misc import logging_rank
from hookline.compat.pet.lib.utils.net import get_bn_modules, update_bn_stats
from hookline.compat.pet.lib.utils.timer import Timer

__all__ = [
    "CommonMetricPrinter",
    "EventStorage",
    "EventWriter",
    "HistoryBuffer",
    "IterationTimer",
    "JSONWriter",
    "LRScheduler",
    "PeriodicWriter",
    "PetHooks",
    "PreciseBN",
    "TensorboardXWriter",
    "TestHook",
    "Timer",
    "TrainHook",
    "get_bn_modules",
    "get_event_storage",
    "logging_rank",
    "update_bn_stats",
]

__getattr__ = not_covered(__name__, [*__all__, "lib"])
