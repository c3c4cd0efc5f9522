"""Letting `import mmengine` mean Hookline's version of it, in this process, for code that cannot be edited."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from hookline.errors import HooklineError, suggest

PACKAGES = ("mmengine", "mmcv")


def install(name: str) -> None:
    """From now on `import mmengine` (or `mmcv`) gives `hookline.compat.mmengine` (`hookline.compat.mmcv`), submodules too.

    Nothing else is changed, and `uninstall` takes it back. HooklineError if the real package was imported already: what has
    been imported from it would go on being the real thing.
    """
    if name not in PACKAGES:
        raise HooklineError(f"there is no stand-in for {name!r}{suggest(name, PACKAGES)}")
    if _finder(name) is not None:
        return
    real = sys.modules.get(name)
    if real is not None:
        raise HooklineError(f"{name} was imported already, from {getattr(real, '__file__', '?')}: call install({name!r}) before that")
    sys.meta_path.insert(0, StandIn(name))


def uninstall(name: str) -> None:
    """Let the name mean what it meant before; modules that were imported meanwhile keep what they have."""
    finder = _finder(name)
    if finder is not None:
        sys.meta_path.remove(finder)
        for module in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            del sys.modules[module]


def _finder(name: str) -> StandIn | None:
    return next((each for each in sys.meta_path if isinstance(each, StandIn) and each.name == name), None)


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of one package in `hookline.compat`. They are the very same objects under a second name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._specs: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name and not fullname.startswith(f"{self.name}."):
            return None
        ours = f"hookline.compat.{fullname}"
        if importlib.util.find_spec(ours) is None:
            outer = fullname.rpartition(".")[0]
            raise ModuleNotFoundError(f"{fullname} is not covered by hookline.compat{suggest(fullname, _modules(outer))}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"hookline.compat.{spec.name}")
        self._specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was run when it was imported under its own name, and keeps what that import gave it."""
        module.__spec__ = self._specs[module.__name__]


def _modules(package: str) -> list[str]:
    """The modules that there are beside one that is not."""
    found = importlib.import_module(f"hookline.compat.{package}")
    return [f"{package}.{each.name}" for each in pkgutil.iter_modules(getattr(found, "__path__", []))]
