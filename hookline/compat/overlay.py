"""Put Hookline's modules into a package of OpenMMLab that is installed.

`mmengine.runner.loops` then is a module of Hookline, and every module that no table names is the
real one. `hookline.compat.mmengine.runner` and `mmengine.runner` are the same module.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from hookline.errors import HooklineError, Suggestion

ORIGINAL = "original_"  # the name of a replaced module begins with it


class OverlayFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A finder of an installed package's modules, some of which Hookline replaces.

    Args:
        name: The package, such as `mmengine`.
        directory: The directory of the installed package.
        replaced: Names of modules below the package, each with the module that replaces it.
    """

    def __init__(self, name: str, directory: Path, replaced: Mapping[str, str]) -> None:
        self.name = name
        self.home = f"hookline.compat.{name}"
        self._directory = directory
        self._own_directory = Path(__file__).parent / name
        self._replaced = replaced
        self._specs: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith(f"{self.name}."):
            return self._find_in_package(fullname, fullname.removeprefix(f"{self.name}."))
        if fullname.startswith(f"{self.home}."):
            return self._find_at_home(fullname, fullname.removeprefix(f"{self.home}."))
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(spec.loader_state)
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the module, which was executed under its first name."""
        alias = module.__spec__
        assert alias is not None
        module.__spec__ = self._specs.pop(alias.name)

    def _find_in_package(self, fullname: str, below: str) -> importlib.machinery.ModuleSpec | None:
        if below in self._replaced:
            return self._alias(fullname, f"{self.home}.{self._replaced[below]}")
        parent, _, leaf = below.rpartition(".")
        if not leaf.startswith(ORIGINAL):
            return None  # The import system finds the installed module.
        file = _file_of(self._directory, f"{parent}.{leaf.removeprefix(ORIGINAL)}")
        return importlib.util.spec_from_file_location(fullname, file)

    def _find_at_home(self, fullname: str, below: str) -> importlib.machinery.ModuleSpec | None:
        replacements = self._replaced.values()
        own = _file_of(self._own_directory, below)
        is_installed = _file_of(self._directory, below) is not None
        if below not in replacements and is_installed:
            return self._alias(fullname, f"{self.name}.{below}")
        if own is None:
            return None
        is_package = own.name == "__init__.py"
        return importlib.util.spec_from_file_location(
            fullname, own, submodule_search_locations=[str(own.parent)] if is_package else None
        )

    def _alias(self, fullname: str, target: str) -> importlib.machinery.ModuleSpec:
        return importlib.machinery.ModuleSpec(fullname, self, loader_state=target)


def begin(name: str, replaced: Mapping[str, str]) -> bool:
    """Begin the overlay of a package; return False if the package is not installed."""
    if find(name) is not None:
        return True
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return False
    if name in sys.modules:
        raise HooklineError(
            f"{name} is already imported, from {spec.origin}",
            suggestion=Suggestion(
                advice=f"import hookline.compat.{name}, or call install({name!r}), before it"
            ),
        )
    sys.meta_path.insert(0, OverlayFinder(name, Path(spec.origin).parent, replaced))
    return True


def find(name: str) -> OverlayFinder | None:
    """Return the overlay of a package that is in use, or None."""
    for finder in sys.meta_path:
        if isinstance(finder, OverlayFinder) and finder.name == name:
            return finder
    return None


def _file_of(directory: Path, module: str) -> Path | None:
    base = directory.joinpath(*module.split("."))
    for file in (base / "__init__.py", base.with_suffix(".py")):
        if file.is_file():
            return file
    return None
