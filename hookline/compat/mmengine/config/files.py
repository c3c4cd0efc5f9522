"""Read config files, execute those in Python, and merge them with their bases."""

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

BASE_KEY = "_base_"
DELETE_KEY = "_delete_"
MODULE_NAME = "<config>"  # `__name__` of a Python config; no imported module has it
SUFFIXES = (".py", ".json", ".yaml", ".yml")
MISSING: Any = object()
BASE_VARIABLE = re.compile(r"""(['"]?)\{\{\s*_base_\.([\w.]+)\s*\}\}\1""")


def load_file(
    path: Path, predefined: bool = True, environment: bool = True
) -> tuple[dict[str, Any], str]:
    """Return the values of a config file, merged with its bases, and the text of all files."""
    path = Path(os.path.abspath(os.path.expanduser(path)))
    if "://" in str(path) or not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such config file")
    if path.suffix not in SUFFIXES:
        raise OSError("Only py/yml/yaml/json type are supported now!")
    text = path.read_text(encoding="utf-8")
    if predefined:
        text = _insert_file_names(text, path)
    if environment:
        text = _insert_environment(text)
    bases = ConfigDict()
    texts = [f"{path}\n{text}"]
    for name in _bases(text, path):
        values, base_text = load_file(path.parent / name, predefined, environment)
        duplicates = [key for key in values if key in bases]
        if duplicates:
            raise KeyError(
                "Duplicate key is not allowed among bases. "
                f"Duplicate keys: {', '.join(duplicates)} (in {path})"
            )
        bases.update(values)
        texts.append(base_text)
    if path.suffix == ".py":
        values = _execute(text, path, bases)
    else:
        values = _read(text, path, bases)
    values.pop(BASE_KEY, None)
    return merge(values, bases), "\n".join(texts)


def merge(child: Mapping[str, Any], base: Any, allow_list_keys: bool = False) -> Any:
    """Merge a config with its base: dicts are merged, other values are replaced.

    A dict with `_delete_=True` replaces the one of the base. With `allow_list_keys`, a dict with
    numbers as keys changes the items of a list.
    """
    if isinstance(base, (list, tuple)):
        return _merge_into_list(child, base)
    result = dict(base)
    for key, value in child.items():
        if isinstance(value, Mapping):
            in_base = result.get(key, MISSING)
            result[key] = _merge_dict(key, value, in_base, allow_list_keys)
        else:
            result[key] = value
    return result


def _merge_dict(key: str, value: Mapping[str, Any], base: Any, allow_list_keys: bool) -> Any:
    child = dict(value)
    is_replacement = child.pop(DELETE_KEY, False)
    if is_replacement or base is MISSING or base is None:
        return merge(child, {}, allow_list_keys)  # removes `_delete_` at every depth
    has_indices = all(str(index).isdigit() for index in child)
    is_list = allow_list_keys and isinstance(base, (list, tuple)) and has_indices
    if isinstance(base, Mapping) or is_list:
        return merge(child, base, allow_list_keys)
    raise TypeError(
        f"{key}={child} in child config cannot inherit from base because {key} is a dict in the "
        f"child config but is of type {type(base)} in base config. You may set "
        f"`{DELETE_KEY}=True` to ignore the base config."
    )


def _merge_into_list(child: Mapping[str, Any], base: Any) -> Any:
    items = list(base)
    for key, value in child.items():
        index = int(key)
        if index >= len(items):
            raise KeyError(f"Index {index} exceeds the length of list {base}")
        if isinstance(value, Mapping) and isinstance(items[index], Mapping):
            items[index] = merge(value, items[index], True)
        else:
            items[index] = value
    return type(base)(items)


def _bases(text: str, path: Path) -> list[str]:
    """Return the bases that a config names, without executing it."""
    if path.suffix == ".py":
        value = _assigned_bases(text, path)
    else:
        value = (_parse(BASE_VARIABLE.sub("null", text), path) or {}).get(BASE_KEY)
    if value is None:
        return []
    names = [value] if isinstance(value, str) else list(value)
    for name in names:
        if "::" in name or "://" in name:
            raise ValueError(
                f"{path}: the base {name!r} is not a local file; configs of other packages are "
                "not covered"
            )
    return names


def _assigned_bases(text: str, path: Path) -> Any:
    value = None
    for statement in ast.parse(text, str(path)).body:
        if isinstance(statement, ast.With) and "read_base" in ast.dump(statement):
            raise NotImplementedError(
                f"{path}: configs made of import statements (read_base) are not covered; use "
                "`_base_`"
            )
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id == BASE_KEY:
                value = ast.literal_eval(statement.value)
    return value


def _execute(text: str, path: Path, bases: ConfigDict) -> dict[str, Any]:
    """Execute a Python config and return its top-level values."""
    print_log(f"running the Python config {path}", logger="current")
    lookup = "__base_value__"
    source = BASE_VARIABLE.sub(lambda match: f"{lookup}({match[2]!r})", text)
    names: dict[str, Any] = {
        "__file__": str(path),
        "__name__": MODULE_NAME,
        lookup: lambda key: _base_value(bases, key),
    }
    # The user named this local file, and executing it was logged.
    exec(compile(source, str(path), "exec"), names)  # noqa: S102
    values = {}
    for key, value in names.items():
        if key.startswith("__") or isinstance(value, ModuleType) or _is_helper(value):
            continue
        values[key] = value
    return values


def _is_helper(value: Any) -> bool:
    """Return whether a value is a class or function that the config file defines."""
    return callable(value) and getattr(value, "__module__", None) == MODULE_NAME


def _read(text: str, path: Path, bases: ConfigDict) -> dict[str, Any]:
    keys: list[str] = []

    def mark(match: re.Match[str]) -> str:
        keys.append(match[2])
        return f'"__base_value_{len(keys) - 1}__"'

    parsed = _parse(BASE_VARIABLE.sub(mark, text), path) or {}
    values: dict[str, Any] = _insert_base_values(parsed, keys, bases)
    return values


def _insert_base_values(value: Any, keys: list[str], bases: ConfigDict) -> Any:
    if isinstance(value, dict):
        return {key: _insert_base_values(item, keys, bases) for key, item in value.items()}
    if isinstance(value, list):
        return [_insert_base_values(item, keys, bases) for item in value]
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"__base_value_(\d+)__", value)
    return value if match is None else _base_value(bases, keys[int(match[1])])


def _parse(text: str, path: Path) -> Any:
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def _base_value(bases: Any, key: str) -> Any:
    for part in key.split("."):
        bases = bases[part]
    return bases


def _insert_file_names(text: str, path: Path) -> str:
    values = {
        "fileDirname": str(path.parent),
        "fileBasename": path.name,
        "fileBasenameNoExtension": path.stem,
        "fileExtname": path.suffix,
    }
    for name, value in values.items():
        text = re.sub(r"\{\{\s*" + name + r"\s*\}\}", value.replace("\\", "/"), text)
    return text


def _insert_environment(text: str) -> str:
    """Replace `{{$NAME:default}}` by the value of an environment variable, as MMEngine does."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], match[2])
        if not found:
            raise KeyError(
                f"the config needs the environment variable {match[1]}, which is not set and has "
                "no default"
            )
        return found

    return re.sub(r"\{\{\s*\$(\w+)\s*:\s*(\S*?)\s*\}\}", value, text)
