"""Choose modules of a model by class name or by a pattern on their names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from hookline.errors import ConfigError, suggest
from hookline.module_names import class_name, named_modules


def select_modules(
    patterns: str | Sequence[str], model: nn.Module, parameter: str, component: str
) -> dict[str, nn.Module]:
    """Return the modules that fit at least one pattern, by name; the model itself never does.

    Args:
        patterns: Class names or patterns on whole names, such as `Block` or `encoder.*`.
        model: The model.
        parameter: The parameter that holds the patterns, for errors.
        component: Its owner, for errors.
    """
    chosen: dict[str, nn.Module] = {}
    modules = named_modules(model)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        fitting = [name for name, module in modules.items() if _fits(pattern, name, module)]
        if not fitting:
            kinds = {class_name(module) for module in modules.values()}
            raise ConfigError(
                f"no module of the model fits {pattern!r}",
                component=component,
                parameter=parameter,
                suggestion=suggest(pattern, [*modules, *kinds]),
            )
        for name in fitting:
            chosen[name] = modules[name]
    return chosen


def _fits(pattern: str, name: str, module: nn.Module) -> bool:
    """Return whether a module fits a pattern by its class or its whole name."""
    return class_name(module) == pattern or fnmatchcase(name, pattern)
