"""Metrics for callbacks: a dict with one lookup for all names of a metric."""

from __future__ import annotations

from typing import Any

from hookline.metrics.results import find_name


class AliasedMetrics(dict[str, Any]):
    """A dict in which `[]`, `in` and `get` accept every spelling of a metric's name.

    Callbacks expect a dict, which `hookline.engine.Metrics` is not.
    """

    def find(self, name: str) -> str | None:
        """Return the key that a name is a spelling of, or None."""
        return find_name(name, self)

    def __missing__(self, name: str) -> Any:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return self[found]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        found = self.find(name)
        if found is None:
            return default
        return self[found]
