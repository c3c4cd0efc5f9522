"""A dict whose keys are also attributes."""

from __future__ import annotations

import copy
from typing import Any

from hookline.errors import suggest


class ConfigDict(dict):  # type: ignore[type-arg]
    """A dict in which `cfg.model.backbone` is `cfg["model"]["backbone"]`.

    The error for a missing attribute suggests the nearest key.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.update(*args, **kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, hook(value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"'ConfigDict' object has no attribute {name!r}{suggest(name, self)}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def copy(self) -> ConfigDict:
        return copy.copy(self)

    def __copy__(self) -> ConfigDict:
        other = type(self)()
        for key, value in self.items():
            dict.__setitem__(other, key, value)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> ConfigDict:
        other = type(self)()
        memo[id(self)] = other
        for key, value in self.items():
            dict.__setitem__(other, copy.deepcopy(key, memo), copy.deepcopy(value, memo))
        return other

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts at every depth."""
        return plain(self)  # type: ignore[no-any-return]


def hook(value: Any) -> Any:
    """Convert a value for a config: dicts become ConfigDicts, also inside lists and tuples."""
    if isinstance(value, ConfigDict):
        return value
    if type(value) is dict:
        return ConfigDict(value)
    if hasattr(value, "_cfg_dict"):
        return ConfigDict(value._cfg_dict)
    if type(value) in (list, tuple):
        return type(value)(hook(item) for item in value)
    return value


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain(item) for item in value)
    return value
