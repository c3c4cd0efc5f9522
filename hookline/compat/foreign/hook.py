"""A hook that drives an unmodified callback of another framework."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hookline.compat.foreign.files import Files
from hookline.engine import BaseHook, BaseRunner


class ForeignHook(BaseHook):
    """Calls the methods that its callback really has, at the sites that correspond to them; the other sites are left alone.

    Each wrapper class has, as methods named after sites, what is to be called there.
    """

    framework: ClassVar[str] = ""
    distributions: ClassVar[tuple[str, ...]] = ()  # under which names the framework is installed
    base: ClassVar[type]  # of the framework's callbacks: a method inherited from it does nothing
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # the callback's methods that a site calls; a site not listed is always called

    def __init__(self, callback: Any) -> None:
        self.callback = callback
        self.files = Files(self)

    @classmethod
    def around(cls, callback: Any) -> ForeignHook:
        """The hook for a callback, of a class with the callback's name: so hooks are named, listed and numbered by it."""
        named = type(type(callback).__name__, (cls,), {"__doc__": type(callback).__doc__, "__module__": cls.__module__})
        hook: ForeignHook = named(callback)
        return hook

    @classmethod
    def version(cls) -> str:
        """The installed version of the framework."""
        for name in cls.distributions:
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
        return "(unknown version)"

    def has(self, method: str) -> bool:
        """Whether the callback has a method of its own, on its class or set on the object."""
        own = getattr(type(self.callback), method, None)
        return method in vars(self.callback) or (own is not None and own is not getattr(self.base, method, None))

    def site_method(self, site: str) -> Callable[..., Any] | None:
        wanted = self.calls.get(site)
        if wanted is not None and not any(self.has(method) for method in wanted):
            return None
        return super().site_method(site)

    def warn(self, text: str, *values: Any) -> None:
        """A warning in the run's log that names the callback."""
        self.runner.logger.warning(f"%s ({self.framework}): {text}", self.name, *values)

    def settle_files(self, runner: BaseRunner) -> None:
        """Write now what would wait for a seam that does not come any more."""
        self.files.settle(runner)
