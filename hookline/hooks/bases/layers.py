"""Select layers of a model by patterns of their names."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from torch import nn

from hookline.engine import BaseHook
from hookline.errors import parameter_error, suggest


def select_layers(
    hook: BaseHook, parameter: str, modules: Mapping[str, nn.Module], patterns: Sequence[str]
) -> dict[str, nn.Module]:
    """Return the modules whose names match a pattern such as `features.*`, in the model's order.

    Raises ConfigError for a pattern that matches none.

    Args:
        parameter: The hook's parameter that holds the patterns.
    """
    selected = set()
    for pattern in patterns:
        names = fnmatch.filter(modules, pattern)
        if not names:
            known = [name for name in modules if name]
            suggestion = suggest(pattern, known)
            raise parameter_error(
                hook, parameter, "matches no layer", value=pattern, suggestion=suggestion
            )
        selected.update(names)
    return {name: module for name, module in modules.items() if name in selected}
