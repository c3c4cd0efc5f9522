"""What Composer imports and this environment does not have: torchvision, which does not go with this torch, and MosaicML's client.

Only the names are there. Composer checks with them whether an object is a data set of torchvision.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

TORCHVISION = (
    "transforms",
    "transforms.functional",
    "datasets",
    "datasets.folder",
    "models",
    "models.resnet",
    "models.segmentation",
)
NAMES = {
    "torchvision": (*TORCHVISION, "models.detection", "ops", "utils"),
    "mcli": ("api", "api.exceptions", "sdk"),
}


class Stub(ModuleType):
    """A module in which every name is an empty class."""

    __path__: list[str] = []
    __version__ = "0.0"

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (), {}))
        return self.__dict__[name]


@contextmanager
def installed() -> Iterator[None]:
    """Only while Composer is imported: others look whether torchvision is there, too."""
    for package, parts in NAMES.items():
        for name in (package, *(f"{package}.{part}" for part in parts)):
            stub = sys.modules.setdefault(name, Stub(name))
            stub.__spec__ = importlib.machinery.ModuleSpec(name, None)
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, stub)
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if isinstance(module, Stub)]:
            del sys.modules[name]
