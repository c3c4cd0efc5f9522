"""Let `import mmengine` import Hookline's version of it, for code that cannot be edited."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

from hookline.compat import overlay
from hookline.errors import HooklineError, Suggestion, suggest

PACKAGES = ("mmengine", "mmcv")


def install(name: str) -> None:
    """Let `import mmengine` (or `mmcv`) import `hookline.compat.mmengine` (or `.mmcv`).

    Where the real package is installed, only some of its modules are replaced, see `overlay`. It
    holds for this process, with all submodules; `uninstall` reverts it. Raises HooklineError if the
    real package is already imported: names imported from it would stay.
    """
    if name not in PACKAGES:
        raise HooklineError(
            f"there is no replacement for {name!r}", suggestion=suggest(name, PACKAGES)
        )
    if _finder(name) is not None or overlay.find(name) is not None:
        return
    real = sys.modules.get(name)
    if real is not None:
        raise HooklineError(
            f"{name} is already imported, from {getattr(real, '__file__', '?')}",
            suggestion=Suggestion(advice=f"call install({name!r}) before importing it"),
        )
    importlib.import_module(f"hookline.compat.{name}")  # begins an overlay of an installed package
    if overlay.find(name) is None:
        sys.meta_path.insert(0, ReplacementFinder(name))


def uninstall(name: str) -> None:
    """Revert `install`; modules that were imported in between keep their imports."""
    finder: importlib.abc.MetaPathFinder | None = _finder(name)
    if finder is None:
        finder = overlay.find(name)
    if finder is None:
        return
    sys.meta_path.remove(finder)
    names = [name]
    if isinstance(finder, overlay.OverlayFinder):
        names.append(finder.home)
    for module in list(sys.modules):
        if any(module == each or module.startswith(f"{each}.") for each in names):
            del sys.modules[module]


def _finder(name: str) -> ReplacementFinder | None:
    for finder in sys.meta_path:
        if isinstance(finder, ReplacementFinder) and finder.name == name:
            return finder
    return None


class ReplacementFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A finder of a package's modules in `hookline.compat`: the same objects, a second name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._specs: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name and not fullname.startswith(f"{self.name}."):
            return None
        if importlib.util.find_spec(f"hookline.compat.{fullname}") is None:
            hint = suggest(fullname, _modules(fullname.rpartition(".")[0]))
            advice = getattr(sys.modules[f"hookline.compat.{self.name}"], "ADVICE", "")
            raise ModuleNotFoundError(
                f"{fullname} is not covered by hookline.compat{hint}{advice and '; '}{advice}",
                name=fullname,
            )
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"hookline.compat.{spec.name}")
        self._specs[module.__name__] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec of the module, which was executed under its name in Hookline."""
        module.__spec__ = self._specs[module.__name__]


def _modules(package: str) -> list[str]:
    """Return the modules of a package that are covered."""
    found = importlib.import_module(f"hookline.compat.{package}")
    modules = pkgutil.iter_modules(getattr(found, "__path__", []))
    return [f"{package}.{module.name}" for module in modules]
