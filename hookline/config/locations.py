"""Config values that keep the file and line they were written at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hookline.errors import NO_VALUE, ConfigError, KeyPath, Problem
from hookline.secrets import is_secret, mask_secrets, mask_text

MAX_MESSAGE_CHARACTERS = 400


class SourceLocation(NamedTuple):
    """The file and line of a config value; None if it is not in a file."""

    file: str | None = None
    line: int | None = None


COMMAND_LINE = SourceLocation("command line")


class Config(dict[str, Any]):
    """A resolved config: plain nested dicts and lists, and the location of each value."""

    def __init__(
        self,
        values: Mapping[str, Any],
        file: str | None = None,
        locations: Mapping[KeyPath, SourceLocation] | None = None,
    ) -> None:
        super().__init__(values)
        self.file = file
        self.locations = dict(locations or {})

    def location(self, path: KeyPath = ()) -> SourceLocation:
        """Return the location of a value, or of the nearest value around it that has one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.locations:
                return self.locations[path[:length]]
        return SourceLocation(self.file, None if self.file is None else 1)

    def at(self, path: KeyPath) -> Any:
        """Return the value at a path, or None."""
        value: Any = self
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def locate(self, problem: Problem) -> Problem:
        """Add file and line to a problem, mask its secrets and shorten a long message."""
        location = self.location(problem.path)
        message = mask_text(problem.message)
        if len(message) > MAX_MESSAGE_CHARACTERS:
            message = f"{message[:MAX_MESSAGE_CHARACTERS]}…"
        secret = any(is_secret(part) for part in problem.path)
        value = NO_VALUE if secret else mask_secrets(problem.value)
        return replace(
            problem, file=location.file, line=location.line, message=message, value=value
        )


@dataclass
class Node:
    """A value of a config that is being loaded: a dict or list of nodes, or a plain value."""

    value: Any
    location: SourceLocation

    @classmethod
    def of(
        cls, value: Any, locate: Callable[[KeyPath], SourceLocation], path: KeyPath = ()
    ) -> Node:
        """Return the nodes of a plain value; `locate` returns the location of each path."""
        if isinstance(value, Mapping):
            items = {key: cls.of(item, locate, (*path, key)) for key, item in value.items()}
            return cls(items, locate(path))
        if isinstance(value, (list, tuple)):
            nodes = [cls.of(item, locate, (*path, index)) for index, item in enumerate(value)]
            return cls(nodes, locate(path))
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        return cls(value, locate(path))

    def plain(self) -> Any:
        """Return the value without locations."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def leaves(self, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
        """Yield every value that is not a container, with its path."""
        for where, node in self.walk(path):
            if not isinstance(node.value, (dict, list)):
                yield where, node

    def walk(self, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
        """Yield this node and all nodes below it, with their paths."""
        yield path, self
        items: Iterable[tuple[Any, Node]] = ()
        if isinstance(self.value, dict):
            items = self.value.items()
        elif isinstance(self.value, list):
            items = enumerate(self.value)
        for key, node in items:
            yield from node.walk((*path, key))

    def text(self, key: str) -> str | None:
        """Return the text under a key of this mapping, or None."""
        item = self.value.get(key) if isinstance(self.value, dict) else None
        if item is not None and isinstance(item.value, str):
            return item.value
        return None

    def error(self, message: str, path: KeyPath = (), **about: Any) -> ConfigError:
        """Return an error at this node's location; `about` holds fields of the problem."""
        return error_at(self.location, message, path, **about)


def error_at(
    location: SourceLocation, message: str, path: KeyPath = (), **about: Any
) -> ConfigError:
    """Return an error at a location; `about` holds fields of the problem."""
    return ConfigError(Problem(message, path, location.file, location.line, **about))


def merge(base: Node, child: Node) -> Node:
    """Merge `child` into `base`: mappings key by key; every other value of `child` replaces.

    A mapping with a different `type` or `policy` replaces the inherited mapping as a whole,
    because the inherited parameters belong to another class.
    """
    if not isinstance(base.value, dict) or not isinstance(child.value, dict):
        return child
    for key in ("type", "policy"):
        if child.text(key) not in (None, base.text(key)) and base.text(key) is not None:
            return child
    merged = dict(base.value)
    for key, node in child.value.items():
        merged[key] = merge(merged[key], node) if key in merged else node
    return Node(merged, child.location)
