"""`mmengine.config`: a config whose keys are attributes. Config files need MMEngine itself."""

from __future__ import annotations

import pprint
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.errors import suggest


class ConfigDict(dict[str, Any]):
    """A dict in which `cfg.model.backbone` is `cfg["model"]["backbone"]`.

    The error for a missing attribute suggests the nearest key.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, _with_attributes(value))

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"'ConfigDict' object has no attribute {name!r}{suggest(name, self)}")

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts at every depth."""
        return _plain(self)  # type: ignore[no-any-return]


class Config(ConfigDict):
    """The config of a run."""

    @staticmethod
    def fromfile(filename: str | Path, **kwargs: Any) -> Config:
        raise NotImplementedError(f"{filename}: config files are not covered; {ADVICE}")

    @property
    def pretty_text(self) -> str:
        """The config as text, one key after the other."""
        lines = []
        for key, value in self.to_dict().items():
            lines.append(f"{key} = {pprint.pformat(value, sort_dicts=False)}\n")
        return "".join(lines)


def _with_attributes(value: Any) -> Any:
    """Return a value with ConfigDicts in place of its dicts, also inside lists and tuples."""
    if isinstance(value, Mapping) and not isinstance(value, ConfigDict):
        return ConfigDict(value)
    if type(value) in (list, tuple):
        return type(value)(_with_attributes(item) for item in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, ConfigDict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)
    return value


__getattr__ = not_covered(__name__, advice=ADVICE)
