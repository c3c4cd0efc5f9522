"""Config files: reading them, running them if they are Python, and putting them on top of their bases."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from hookline.compat.mmengine.config.config_dict import ConfigDict
from hookline.compat.mmengine.logging.logger import print_log

BASE_KEY, DELETE_KEY = "_base_", "_delete_"
SUFFIXES = (".py", ".json", ".yaml", ".yml")
BASE_VARIABLE = re.compile(r"""(['"]?)\{\{\s*_base_\.([\w.]+)\s*\}\}\1""")


def load_file(path: Path, predefined: bool = True, environment: bool = True) -> tuple[dict[str, Any], str]:
    """The values of a config file, merged with its bases, and the text of them all."""
    path = Path(os.path.abspath(os.path.expanduser(path)))
    if "://" in str(path) or not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such config file")
    if path.suffix not in SUFFIXES:
        raise OSError("Only py/yml/yaml/json type are supported now!")
    text = path.read_text(encoding="utf-8")
    if predefined:
        text = _fill_in_file_names(text, path)
    if environment:
        text = _fill_in_environment(text)
    bases, texts = ConfigDict(), [f"{path}\n{text}"]
    for name in _bases(text, path):
        values, base_text = load_file(path.parent / name, predefined, environment)
        twice = [key for key in values if key in bases]
        if twice:
            raise KeyError(f"Duplicate key is not allowed among bases. Duplicate keys: {', '.join(twice)} (in {path})")
        bases.update(values)
        texts.append(base_text)
    own = _run(text, path, bases) if path.suffix == ".py" else _read(text, path, bases)
    own.pop(BASE_KEY, None)
    return merge(own, bases), "\n".join(texts)


def merge(own: Mapping[str, Any], base: Any, allow_list_keys: bool = False) -> Any:
    """A config on top of another: dicts are merged, unless `_delete_=True` says otherwise; all else is replaced."""
    if isinstance(base, (list, tuple)):
        return _merge_into_list(own, base)
    result = dict(base)
    for key, value in own.items():
        below = result.get(key)
        if isinstance(value, Mapping):
            value = dict(value)
            deleted = value.pop(DELETE_KEY, False)
            numbered = allow_list_keys and isinstance(below, (list, tuple)) and all(str(index).isdigit() for index in value)
            if not deleted and key in result and (isinstance(below, Mapping) or numbered):
                value = merge(value, below, allow_list_keys)
            elif not deleted and key in result and below is not None and not isinstance(below, Mapping):
                raise TypeError(
                    f"{key}={value} in child config cannot inherit from base because {key} is a dict in the child config but is of "
                    f"type {type(below)} in base config. You may set `{DELETE_KEY}=True` to ignore the base config."
                )
            else:
                value = merge(value, {}, allow_list_keys)  # for what is deleted further inside
        result[key] = value
    return result


def _merge_into_list(own: Mapping[str, Any], base: Any) -> Any:
    items = list(base)
    for key, value in own.items():
        index = int(key)
        if index >= len(items):
            raise KeyError(f"Index {index} exceeds the length of list {base}")
        items[index] = merge(value, items[index], True) if isinstance(value, Mapping) and isinstance(items[index], Mapping) else value
    return type(base)(items)


def _bases(text: str, path: Path) -> list[str]:
    if path.suffix == ".py":
        value: Any = None
        for statement in ast.parse(text, str(path)).body:
            if isinstance(statement, ast.With) and "read_base" in ast.dump(statement):
                raise NotImplementedError(f"{path}: configs made of import statements (read_base) are not covered; use `_base_`")
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if any(isinstance(target, ast.Name) and target.id == BASE_KEY for target in targets):
                value = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
    else:
        value = (_parse(BASE_VARIABLE.sub("null", text), path) or {}).get(BASE_KEY)
    names = [] if value is None else [value] if isinstance(value, str) else list(value)
    for name in names:
        if "::" in name or "://" in name:
            raise ValueError(f"{path}: the base {name!r} is not a local file; configs of other packages are not covered")
    return names


def _run(text: str, path: Path, bases: ConfigDict) -> dict[str, Any]:
    """The top-level names of a Python config after running it."""
    print_log(f"running the Python config {path}", logger="current")
    lookup = "__base_value__"
    source = BASE_VARIABLE.sub(lambda match: f"{lookup}({match[2]!r})", text)
    names: dict[str, Any] = {"__file__": str(path), "__name__": "config", lookup: lambda key: _base_value(bases, key)}
    exec(compile(source, str(path), "exec"), names)  # noqa: S102  # the user named this local file, and the log says that it is run
    kept = {key: value for key, value in names.items() if not key.startswith("__")}
    return {key: value for key, value in kept.items() if not isinstance(value, ModuleType) and not _is_defined_here(value)}


def _is_defined_here(value: Any) -> bool:
    """Classes and functions of a config file are its tools, not values."""
    return getattr(value, "__module__", None) == "config" and callable(value)


def _read(text: str, path: Path, bases: ConfigDict) -> dict[str, Any]:
    keys: list[str] = []

    def mark(match: re.Match[str]) -> str:
        keys.append(match[2])
        return f'"__base_value_{len(keys) - 1}__"'

    return _put_in(_parse(BASE_VARIABLE.sub(mark, text), path) or {}, keys, bases)  # type: ignore[no-any-return]


def _put_in(value: Any, keys: list[str], bases: ConfigDict) -> Any:
    if isinstance(value, dict):
        return {key: _put_in(item, keys, bases) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_in(item, keys, bases) for item in value]
    match = re.fullmatch(r"__base_value_(\d+)__", value) if isinstance(value, str) else None
    return value if match is None else _base_value(bases, keys[int(match[1])])


def _parse(text: str, path: Path) -> Any:
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def _base_value(bases: Any, key: str) -> Any:
    for part in key.split("."):
        bases = bases[part]
    return bases


def _fill_in_file_names(text: str, path: Path) -> str:
    values = {
        "fileDirname": str(path.parent),
        "fileBasename": path.name,
        "fileBasenameNoExtension": path.stem,
        "fileExtname": path.suffix,
    }
    for name, value in values.items():
        text = re.sub(r"\{\{\s*" + name + r"\s*\}\}", value.replace("\\", "/"), text)
    return text


def _fill_in_environment(text: str) -> str:
    """`{{$NAME:default}}` and `'{{$NAME:default}}'`, as MMEngine has them."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], match[2])
        if not found:
            raise KeyError(f"the config needs the environment variable {match[1]}, which is not set and has no default")
        return found

    return re.sub(r"\{\{\s*\$(\w+)\s*:\s*(\S*?)\s*\}\}", value, text)
