"""Lightning's classes, from either of its two packages.

It is published as `lightning.pytorch` and as `pytorch_lightning`, with separate classes.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
CALLBACK_MODULE = "callbacks.callback"


def find_package(cls: type) -> str | None:
    """Return the package whose Callback a class is derived from, or None."""
    for package in PACKAGES:
        # A class can only be derived from a Callback whose module is imported.
        module = sys.modules.get(f"{package}.{CALLBACK_MODULE}")
        base = getattr(module, "Callback", None)
        if base is not None and issubclass(cls, base):
            return package
    return None


class Classes:
    """The classes of one package that the stand-ins need."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.callback: Any = self._module(CALLBACK_MODULE).Callback
        self.callbacks: ModuleType = self._module("callbacks")
        self.module: Any = self._module("core.module").LightningModule
        self.logger: Any = self._module("loggers.logger").Logger
        states = self._module("trainer.states")
        self.state: Any = states.TrainerState
        self.stage: Any = states.RunningStage
        self.fn: Any = states.TrainerFn
        self.status: Any = states.TrainerStatus
        self.scheduler_config: Any = self._module("utilities.types").LRSchedulerConfig
        self.accelerators: ModuleType = self._module("accelerators")
        self.precision: Any = self._module("plugins.precision").Precision

    def _module(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{name}")


@cache
def load_classes(package: str) -> Classes:
    """Return the classes of a package; they are imported once."""
    return Classes(package)
