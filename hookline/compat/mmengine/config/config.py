"""Configs: load them from files, change them from the command line, write them."""

from __future__ import annotations

import argparse
import ast
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hookline.compat.mmengine.config.config_dict import ConfigDict
from hookline.compat.mmengine.config.files import DELETE_KEY, load_file, merge
from hookline.compat.mmengine.utils.modules import import_modules_from_strings

RESERVED = ("filename", "text", "pretty_text", "env_variables")


class Config:
    """A config, whose keys are attributes at every depth."""

    def __init__(
        self,
        cfg_dict: Any = None,
        cfg_text: str | None = None,
        filename: str | Path | None = None,
        env_variables: dict[str, str] | None = None,
        format_python_code: bool = True,
    ) -> None:
        values = {} if cfg_dict is None else cfg_dict
        if isinstance(values, Config):
            values = values._cfg_dict
        if not isinstance(values, dict):
            raise TypeError(f"cfg_dict must be a dict, but got {type(cfg_dict)}")
        for key in values:
            if key in RESERVED:
                raise KeyError(f"{key} is reserved for config file")
        if not isinstance(values, ConfigDict):
            values = ConfigDict(values)
        # `__setattr__` below sets keys of the config.
        object.__setattr__(self, "_cfg_dict", values)
        object.__setattr__(self, "_filename", None if filename is None else str(filename))
        object.__setattr__(self, "_text", cfg_text or "")

    @staticmethod
    def fromfile(
        filename: str | Path,
        use_predefined_variables: bool = True,
        import_custom_modules: bool = True,
        use_environment_variables: bool = True,
        lazy_import: bool | None = None,
        format_python_code: bool = True,
    ) -> Config:
        """Load the config of a local `.py`, `.yaml`, `.yml` or `.json` file and its bases.

        A Python config is executed, and so are the Python files that it names in `_base_`. This is
        logged.
        """
        if lazy_import:
            raise NotImplementedError(
                "configs made of import statements (lazy_import) are not covered; use `_base_`"
            )
        values, text = load_file(
            Path(filename), use_predefined_variables, use_environment_variables
        )
        cfg = Config(values, cfg_text=text, filename=filename)
        if import_custom_modules and cfg.get("custom_imports"):
            import_modules_from_strings(**cfg["custom_imports"])
        return cfg

    @staticmethod
    def fromstring(cfg_str: str, file_format: str) -> Config:
        """Make a config from YAML or JSON text. Python text is not executed, only files are."""
        if file_format == ".py":
            raise ValueError(
                "Python configs are executed only from a local file: use Config.fromfile(path)"
            )
        if file_format not in (".yaml", ".yml", ".json"):
            raise OSError("Only yaml, yml and json text is supported")
        values = json.loads(cfg_str) if file_format == ".json" else yaml.safe_load(cfg_str)
        return Config(values, cfg_text=cfg_str)

    @property
    def filename(self) -> str | None:
        return self._filename  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        return self._text  # type: ignore[no-any-return]

    @property
    def pretty_text(self) -> str:
        """The config as the text of a Python file."""
        lines = [f"{key} = {_literal(value)}\n" for key, value in self._cfg_dict.items()]
        return "".join(lines)

    def merge_from_dict(self, options: dict[str, Any], allow_list_keys: bool = True) -> None:
        """Change values by dotted keys: `{'model.depth': 18, 'hooks.0.interval': 5}`."""
        nested: dict[str, Any] = {}
        for full_key, value in options.items():
            section = nested
            *outer, last = full_key.split(".")
            for key in outer:
                section = section.setdefault(key, {})
            section[last] = value
        merged = ConfigDict(merge(nested, self._cfg_dict, allow_list_keys))
        object.__setattr__(self, "_cfg_dict", merged)

    def dump(self, file: str | Path | None = None) -> str | None:
        """Write the config in the format of the file's suffix; return the text without a file."""
        suffix = Path(file or self._filename or "config.py").suffix
        values = self._cfg_dict.to_dict()
        if suffix == ".json":
            text = json.dumps(values, indent=2, default=str)
        elif suffix in (".yaml", ".yml"):
            text = yaml.safe_dump(json.loads(json.dumps(values, default=str)), sort_keys=False)
        else:
            text = self.pretty_text
        if file is None:
            return text
        Path(file).write_text(text, encoding="utf-8")
        return None

    def to_dict(self) -> dict[str, Any]:
        return self._cfg_dict.to_dict()  # type: ignore[no-any-return]

    def copy(self) -> Config:
        return copy.copy(self)

    def __getattr__(self, name: str) -> Any:
        if name == "_cfg_dict":  # not set yet while a copy is made
            raise AttributeError(name)
        return getattr(self._cfg_dict, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._cfg_dict[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._cfg_dict[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._cfg_dict[name] = value

    def __delitem__(self, name: str) -> None:
        del self._cfg_dict[name]

    __delattr__ = __delitem__

    def __contains__(self, name: object) -> bool:
        return name in self._cfg_dict

    def __iter__(self) -> Iterator[str]:
        return iter(self._cfg_dict)

    def __len__(self) -> int:
        return len(self._cfg_dict)

    def __repr__(self) -> str:
        return f"Config (path: {self._filename}): {self._cfg_dict!r}"

    def __copy__(self) -> Config:
        return Config(copy.copy(self._cfg_dict), self._text, self._filename)

    def __deepcopy__(self, memo: dict[int, Any]) -> Config:
        return Config(copy.deepcopy(self._cfg_dict, memo), self._text, self._filename)

    def __reduce__(self) -> Any:
        return Config, (self.to_dict(), self._text, self._filename)


class DictAction(argparse.Action):
    """The action of `--cfg-options key=value …`; parses numbers, booleans, lists and tuples."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        options = dict(getattr(namespace, self.dest) or {})
        for pair in values:
            key, _, text = pair.partition("=")
            options[key] = _read_value(text)
        setattr(namespace, self.dest, options)


def _read_value(text: str) -> Any:
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if "," in text:
            return [_read_value(part) for part in text.split(",")]
        return text


def _literal(value: Any, indent: int = 0) -> str:
    """Return a value as Python source, with classes and functions as dotted names."""
    if isinstance(value, dict):
        return _dict_literal(value, indent)
    if type(value) in (list, tuple):
        items = ", ".join(_literal(item, indent + 4) for item in value)
        if type(value) is list:
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    name = getattr(value, "__qualname__", None)
    if name and hasattr(value, "__module__"):
        return repr(f"{value.__module__}.{name}")
    return repr(str(value))


def _dict_literal(value: dict[Any, Any], indent: int) -> str:
    if not value:
        return "dict()"
    has_keywords = all(isinstance(key, str) and key.isidentifier() for key in value)
    padding = " " * (indent + 4)
    rows = []
    for key, item in value.items():
        label = f"{key}=" if has_keywords else f"{key!r}: "
        rows.append(f"{padding}{label}{_literal(item, indent + 4)}")
    body = ",\n".join(rows)
    if has_keywords:
        return f"dict(\n{body})"
    return f"{{\n{body}\n{' ' * indent}}}"


__all__ = ["DELETE_KEY", "Config", "DictAction"]
