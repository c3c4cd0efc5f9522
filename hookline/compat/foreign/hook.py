"""A hook that drives an unmodified callback of another framework."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from hookline.compat.foreign.files import Files
from hookline.compat.foreign.state import select_plain
from hookline.engine import BaseHook, BaseRunner

H = TypeVar("H", bound="ForeignHook")


class ForeignHook(BaseHook):
    """The base of the hooks that call the methods of a callback at the corresponding sites.

    A site for whose methods the callback has no implementation is not hooked.
    """

    framework: ClassVar[str] = ""
    distributions: ClassVar[tuple[str, ...]] = ()  # the names under which it can be installed
    expected: ClassVar[str] = ""  # the objects that `wrap` takes, for its error message
    base: type  # the framework's base class, whose methods do nothing
    # The methods of a callback that each site calls. A site that is not listed is always hooked.
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, callback: Any) -> None:
        self.callback = callback
        self.files = Files(self)
        self._rejected_keys: set[str] = set()

    @classmethod
    def is_callback(cls, kind: type) -> bool:
        """Return whether a class is a callback of the framework."""
        return issubclass(kind, cls.base)

    @classmethod
    def wrap(cls: type[H], callback: Any) -> H:
        """Return a hook that drives an unmodified callback.

        Its class has the name of the callback's, so that hooks are named and listed by it.
        """
        kind = type(callback)
        if not cls.is_callback(kind):
            raise TypeError(f"expected {cls.expected}, got {callback!r}")
        attributes = {"__doc__": kind.__doc__, "__module__": cls.__module__}
        named: type[H] = type(kind.__name__, (cls,), attributes)
        return named(callback)

    @classmethod
    def version(cls) -> str:
        """Return the installed version of the framework."""
        for name in cls.distributions:
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return "(unknown version)"

    def has(self, method: str) -> bool:
        """Return whether the callback implements a method, in its class or on the object."""
        if method in vars(self.callback):
            return True
        implementation = getattr(type(self.callback), method, None)
        return implementation is not None and implementation is not getattr(self.base, method, None)

    def has_any(self, *methods: str) -> bool:
        """Return whether the callback implements at least one of several methods."""
        return any(self.has(method) for method in methods)

    def site_method(self, site: str) -> Callable[..., Any] | None:
        methods = self.calls.get(site)
        if methods is not None and not self.has_any(*methods):
            return None
        return super().site_method(site)

    def warn(self, text: str, *values: Any) -> None:
        """Log a warning that names the callback."""
        self.runner.logger.warning(f"%s ({self.framework}): {text}", self.name, *values)

    def settle_files(self, runner: BaseRunner) -> None:
        """Write the requested files now, because no seam follows."""
        self.files.settle(runner)

    def plain_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a state that a checkpoint can hold; warn once about each other key."""
        return select_plain(state, self._warn_about_key)

    def _warn_about_key(self, key: str) -> None:
        if key in self._rejected_keys:
            return
        self._rejected_keys.add(key)
        self.warn(
            "%r of its state is neither a tensor nor plain data and is not in the checkpoint", key
        )
