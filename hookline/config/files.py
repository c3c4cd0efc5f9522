"""Read a config file in YAML, JSON or TOML; every error has a line."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookline.config.locations import Node, SourceLocation, error_at
from hookline.config.yaml_marks import MAX_DEPTH, check_integer, parse_yaml
from hookline.errors import KeyPath, suggest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES = 1_000_000


def read_file(path: Path, named_at: SourceLocation | None = None) -> Node:
    """Return the mapping in a config file as nodes.

    Args:
        path: The file.
        named_at: The location of the file's name, if another config names it as its base.
    """
    location = named_at or SourceLocation(str(path))
    prefix = f"{path}: " if named_at else ""
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        message = f"{prefix}the name of a config file must end in {', '.join(_PARSERS)}"
        raise error_at(location, message)
    text = _read_text(path, location, prefix)
    root = parse(text, str(path)) if text.strip() else None
    if root is None:
        raise error_at(SourceLocation(str(path), 1), "the file is empty")
    if not isinstance(root.value, dict):
        found = "a list" if isinstance(root.value, list) else repr(str(root.value)[:40])
        message = f"a config must be a mapping (key: value), but this file holds {found}"
        raise error_at(SourceLocation(str(path), root.location.line), message)
    return root


def _read_text(path: Path, location: SourceLocation, prefix: str) -> str:
    try:
        if path.is_dir():
            suggestion = suggest("config.yaml", _configs_in(path))
            message = f"{prefix}this is a directory, not a config file"
            raise error_at(location, message, suggestion=suggestion)
        # O_NONBLOCK: opening a pipe must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise error_at(location, f"{prefix}this is not a regular file")
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        suggestion = suggest(path.name, _configs_in(path.parent))
        raise error_at(location, f"{prefix}no such file", suggestion=suggestion) from error
    except OSError as error:
        raise error_at(location, f"{prefix}cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES:,} bytes"
        raise error_at(SourceLocation(str(path), 1), message)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise error_at(SourceLocation(str(path), line), "this is not UTF-8 text") from error


def _configs_in(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if Path(name).suffix.lower() in _PARSERS]
    except OSError:
        return []


def _parse_json(text: str, file: str) -> Node | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        message = f"invalid JSON: {error.msg} (column {error.colno})"
        raise error_at(SourceLocation(file, error.lineno), message) from error
    except RecursionError as error:
        raise error_at(SourceLocation(file, 1), "nested too deep") from error
    except ValueError as error:  # a number with thousands of digits
        raise error_at(SourceLocation(file, 1), f"invalid JSON: {error}") from error
    # Valid JSON is YAML, except for tabs between values; the YAML parser keeps line numbers.
    return parse_yaml(text.replace("\t", " "), file)


def _parse_toml(text: str, file: str) -> Node:
    long_key = _LONG_TOML_KEY.search(text)  # tomllib takes quadratic time for it
    if long_key is not None:
        line = text.count("\n", 0, long_key.start()) + 1
        message = f"nested more than {MAX_DEPTH} levels deep"
        raise error_at(SourceLocation(file, line), message)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        named = re.search(r"at line (\d+)", str(error))
        message = re.sub(r" \(at .*\)$", "", str(error))
        number = int(named[1]) if named else text.rstrip().count("\n") + 1
        raise error_at(SourceLocation(file, number), f"invalid TOML: {message}") from error
    except RecursionError as error:
        raise error_at(SourceLocation(file, 1), "nested too deep") from error
    except ValueError as error:  # a number with thousands of digits
        raise error_at(SourceLocation(file, 1), f"invalid TOML: {error}") from error
    if _is_too_deep(values):
        raise error_at(SourceLocation(file, 1), f"nested more than {MAX_DEPTH} levels deep")
    lines = _toml_lines(text)
    root = Node.of(values, lambda path: SourceLocation(file, _nearest_line(lines, path)))
    for path, node in root.leaves():
        if not isinstance(node.value, (str, int, float, bool)):
            message = "a config holds plain values only; quote a date or time"
            raise node.error(message, path)
        if isinstance(node.value, int):
            try:
                check_integer(node.value)
            except ValueError as error:
                raise node.error(str(error), path) from error
    return root


def _is_too_deep(values: Any) -> bool:
    level = [values]
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _items(value)]
    return bool(level)


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


_PARSERS: dict[str, Callable[[str, str], Node | None]] = {
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
    ".json": _parse_json,
    ".toml": _parse_toml,
}
_TOML_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_TOML_KEY = re.compile(rf"(?<![\w-])(?:{_TOML_PART}[ \t]*\.[ \t]*){{{MAX_DEPTH}}}")
_TOML_TABLE = re.compile(r"^\s*\[(\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_TOML_KEY = re.compile(
    r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*="""
)


def _toml_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each table and key; tomllib does not report them."""
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _TOML_TABLE.match(line)
        key = _TOML_KEY.match(line)
        if header:
            table = _in_arrays(_toml_path(header[2]), counts)
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key:
            path = (*table, *_toml_path(key[1]))
            for length in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:length], number)
    return lines


def _toml_path(text: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", text))


def _in_arrays(path: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    """Insert array indices: `[hooks.schedule]` below `[[hooks]]` belongs to the last hook."""
    found: KeyPath = ()
    for part in path[:-1]:
        found = (*found, part)
        if found in counts:
            found = (*found, counts[found])
    return (*found, *path[-1:])


def _nearest_line(lines: dict[KeyPath, int], path: KeyPath) -> int:
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1
