"""Lightning is published under two names, `lightning.pytorch` and `pytorch_lightning`, with classes of their own each."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
BASE = "callbacks.callback"


def package_of(cls: type) -> str | None:
    """The package whose Callback a class is made from; None if it is no callback of Lightning's."""
    for base in cls.__mro__:
        for package in PACKAGES:
            if base.__name__ == "Callback" and base.__module__ == f"{package}.{BASE}":
                return package
    return None


class Names:
    """The classes of one of the packages that the stand-ins are made with."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.callback: Any = self._module(BASE).Callback
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
