"""Reading a config file of any format; every mistake in it has a line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from hookline.config.places import Node, Place, error_at
from hookline.config.yaml_marks import parse_yaml
from hookline.errors import Path, suggest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_BYTES = 1_000_000


def read_file(path: FilePath, asked_at: Place | None = None) -> Node:
    """The mapping in a file as nodes. `asked_at` is the place that names the file, if it is another config."""
    file = str(path)
    parse = _PARSERS.get(path.suffix.lower())
    place = asked_at or (file, None)
    if parse is None:
        raise error_at(place, f"{_named(file, asked_at)}a config file ends in {', '.join(_PARSERS)}")
    text = _read_text(path, place, _named(file, asked_at))
    root = parse(text, file) if text.strip() else None
    if root is None:
        raise error_at((file, 1), "the file is empty")
    if not isinstance(root.value, dict):
        raise error_at((file, root.place[1]), f"a config is a mapping (key: value), this file holds {_kind(root.value)}")
    return root


def _read_text(path: FilePath, place: Place, named: str) -> str:
    try:
        if path.is_dir():
            raise error_at(place, f"{named}this is a directory, not a config file{suggest('config.yaml', _configs_in(path))}")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise error_at(place, f"{named}no such file{suggest(path.name, _configs_in(path.parent))}") from error
    except OSError as error:
        raise error_at(place, f"{named}cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise error_at((str(path), 1), f"the file is larger than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise error_at((str(path), data.count(b"\n", 0, error.start) + 1), "this is not text in UTF-8") from error


def _configs_in(folder: FilePath) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if FilePath(name).suffix.lower() in _PARSERS]
    except OSError:
        return []


def _named(file: str, asked_at: Place | None) -> str:
    return "" if asked_at is None else f"{file}: "


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else f"just {str(value)[:40]!r}"


def _parse_json(text: str, file: str) -> Node | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise error_at((file, error.lineno), f"not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise error_at((file, 1), "nested too deep") from error
    # Right JSON is YAML too, but for tabs, which can only stand between its values; and YAML knows the lines.
    return parse_yaml(text.replace("\t", " "), file)


def _parse_toml(text: str, file: str) -> Node:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise error_at((file, int(line[1]) if line else max(text.rstrip().count("\n") + 1, 1)), f"not TOML: {message}") from error
    except RecursionError as error:
        raise error_at((file, 1), "nested too deep") from error
    lines = _toml_lines(text)
    root = Node.of(values, lambda path: (file, _nearest(lines, path)))
    for path, node in root.leaves():
        if not isinstance(node.value, (str, int, float, bool)):
            raise node.error("a config holds plain values only; quote a date or time", path)
    return root


_PARSERS: dict[str, Callable[[str, str], Node | None]] = {
    ".yaml": parse_yaml,
    ".yml": parse_yaml,
    ".json": _parse_json,
    ".toml": _parse_toml,
}
_TOML_TABLE = re.compile(r"^\s*\[(\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_TOML_KEY = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def _toml_lines(text: str) -> dict[Path, int]:
    """The line of each table and key, which the parser does not tell."""
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TOML_TABLE.match(line):
            table = _in_arrays(_toml_path(header[2]), counts)
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := _TOML_KEY.match(line):
            path = (*table, *_toml_path(key[1]))
            for length in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:length], number)
    return lines


def _toml_path(text: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", text))


def _in_arrays(path: Path, counts: dict[Path, int]) -> Path:
    """`[hooks.schedule]` below `[[hooks]]` belongs to the last hook."""
    found: Path = ()
    for part in path[:-1]:
        found = (*found, part)
        if found in counts:
            found = (*found, counts[found])
    return (*found, *path[-1:])


def _nearest(lines: dict[Path, int], path: Path) -> int:
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)
