"""Config values that remember where they were written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hookline.errors import ConfigError, Path, Problem
from hookline.secrets import is_secret, mask_text

Place = tuple[str | None, int | None]  # file and line
COMMAND_LINE: Place = ("command line", None)


class Config(dict[str, Any]):
    """A resolved config: plain nested dicts and lists, and the place in a file of each value."""

    def __init__(self, values: Mapping[str, Any], file: str | None = None, places: Mapping[Path, Place] | None = None) -> None:
        super().__init__(values)
        self.file = file
        self.places = dict(places or {})

    def place(self, path: Path = ()) -> Place:
        """File and line of a value, or of the nearest part around it that was written somewhere."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.file, None if self.file is None else 1

    def at(self, path: Path) -> Any:
        """The value at a path; None if there is none."""
        value: Any = self
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def locate(self, problem: Problem) -> Problem:
        """The problem with its file and line, without secrets, and no longer than a few lines."""
        file, line = self.place(problem.path)
        message = mask_text(problem.message)
        if any(is_secret(part) for part in problem.path):
            message = message.partition(", got ")[0]
        return replace(problem, file=file, line=line, message=message if len(message) <= 400 else f"{message[:400]}…")


@dataclass
class Node:
    """A value on its way into a config: a dict of nodes, a list of nodes or a plain value, and its place."""

    value: Any
    place: Place

    @classmethod
    def of(cls, value: Any, place: Callable[[Path], Place], path: Path = ()) -> Node:
        """The nodes of a plain value; `place` tells where each path is."""
        if isinstance(value, Mapping):
            return cls({key: cls.of(item, place, (*path, key)) for key, item in value.items()}, place(path))
        if isinstance(value, (list, tuple)):
            return cls([cls.of(item, place, (*path, index)) for index, item in enumerate(value)], place(path))
        return cls(os.fspath(value) if isinstance(value, os.PathLike) else value, place(path))

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Every value that is no container, with its path."""
        return ((where, node) for where, node in self.walk(path) if not isinstance(node.value, (dict, list)))

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """This node and all below it, with their paths."""
        yield path, self
        items = self.value.items() if isinstance(self.value, dict) else enumerate(self.value) if isinstance(self.value, list) else ()
        for key, node in items:
            yield from node.walk((*path, key))

    def text(self, key: str) -> str | None:
        """The text under a key of this mapping; None if there is none."""
        item = self.value.get(key) if isinstance(self.value, dict) else None
        return item.value if item is not None and isinstance(item.value, str) else None

    def error(self, message: str, path: Path = ()) -> ConfigError:
        """An error at this place."""
        return error_at(self.place, message, path)


def error_at(place: Place, message: str, path: Path = ()) -> ConfigError:
    """An error with a place that belongs to the user's config."""
    return ConfigError(Problem(message, path, *place))


def merge(base: Node, child: Node) -> Node:
    """`child` over `base`: mappings by key, everything else replaced.

    A mapping that names another `type` (or `policy`) replaces the inherited one too: its parameters belong to another class.
    """
    if not isinstance(base.value, dict) or not isinstance(child.value, dict):
        return child
    for key in ("type", "policy"):
        if child.text(key) not in (None, base.text(key)) and base.text(key) is not None:
            return child
    merged = dict(base.value)
    for key, node in child.value.items():
        merged[key] = merge(merged[key], node) if key in merged else node
    return Node(merged, child.place)
