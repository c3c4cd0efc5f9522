"""Check all hooks in a host against the declared differences."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from hookline import HOOKS
from tests.contracts.hooks import hook_classes
from tests.parity.comparison import find_differences
from tests.parity.differences import is_declared, stale
from tests.parity.hosts import Host
from tests.parity.observation import Observation, observe

SLOW = ("ClearMLHook",)  # closing its offline session takes ten seconds and more


def hooks_to_compare(are_slow: bool = False) -> list[str]:
    """Return the hooks whose packages are installed."""
    names = []
    for cls in hook_classes():
        package = getattr(HOOKS.get(cls.__name__), "module", None)
        is_installed = package is None or importlib.util.find_spec(package) is not None
        if is_installed and (cls.__name__ in SLOW) == are_slow:
            names.append(cls.__name__)
    return names


def unexpected_differences(
    host_name: str,
    host: Host,
    reference: Callable[[str], Observation],
    folder: Path,
    hooks: list[str],
    tolerance: float = 0.0,
) -> dict[str, list[str]]:
    """Train with each hook in a host, and return differences that are not declared.

    A declared difference that does not occur is returned as well.
    """
    problems: dict[str, list[str]] = {}
    for hook in hooks:
        there = observe(host, hook, folder / hook)
        found = find_differences(reference(hook), there, tolerance)
        lines = []
        for name, (one, other) in found.items():
            if not is_declared(host_name, hook, name):
                lines.append(f"{name}: {_shorten(one)} in a Runner, {_shorten(other)} here")
        for name in stale(host_name, hook, found):
            lines.append(f"{name}: declared, but there is no difference")
        if lines:
            problems[hook] = lines
    return problems


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) < 100 else f"{text[:97]}..."
