"""Resolve interpolations such as `${work_dir}/x` and `${oc.env:HOME}` with OmegaConf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hookline.config.locations import Config, Node
from hookline.errors import ConfigError, KeyPath, Problem, dotted, suggest
from hookline.secrets import mask_text

MAX_DEPTH = 10  # levels of nested brackets in one value
MAX_REFERENCES = 100  # interpolations in one value
MAX_EXPANDED_CHARACTERS = 10_000_000  # of all resolved values
ENTRY_CHARACTERS = 1000  # counted for each entry of a container, for its memory
PLACEHOLDER = "hookline.unresolved"


def resolve(root: Node, file: str | None) -> Config:
    """Return the config with all interpolations resolved.

    Raises:
        ConfigError: With every interpolation that fails and every `???`, each with its location.
    """
    locations = {path: node.location for path, node in root.walk() if path}
    values = root.plain()
    texts = [(path, node) for path, node in root.leaves() if isinstance(node.value, str)]
    unset = [(path, node) for path, node in texts if node.value == "???"]
    if unset:
        raise ConfigError([_problem(path, node, "a value is required") for path, node in unset])
    interpolated = [(path, node) for path, node in texts if "${" in node.value]
    if interpolated:
        values = _interpolate(values, interpolated)
    return Config(values, file, locations)


def _interpolate(values: Any, interpolated: list[tuple[KeyPath, Node]]) -> Any:
    problems = [*_too_complex(interpolated)] or [*_unreadable(interpolated)]
    if problems:
        raise ConfigError(problems)
    return Interpolation(values, interpolated).resolve()


def _too_complex(interpolated: list[tuple[KeyPath, Node]]) -> Iterator[Problem]:
    """Yield the values that would keep OmegaConf's parser busy for minutes."""
    for path, node in interpolated:
        if node.value.count("${") > MAX_REFERENCES or _depth(node.value) > MAX_DEPTH:
            limits = f"{MAX_REFERENCES} interpolations, {MAX_DEPTH} inside each other"
            yield _problem(path, node, f"too complex; a value may have at most {limits}")


def _depth(text: str) -> int:
    """Return how deep brackets and interpolations are nested in a text."""
    depth = deepest = 0
    for character in text:
        if character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest


def _unreadable(interpolated: list[tuple[KeyPath, Node]]) -> Iterator[Problem]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for path, node in interpolated:
        try:
            OmegaConf.create({"value": node.value})
        except OmegaConfBaseException as error:
            yield _problem(path, node, f"cannot be read: {_first_line(error)}")


class Interpolation:
    """The resolution of all interpolations of a config, each of them once.

    OmegaConf resolves a reference again for every use, so a chain of lines that each refer twice
    to the next one takes exponential time. Here an unresolved value is a placeholder. When another
    value uses it, its own value is resolved first and stored.
    """

    def __init__(self, values: Any, interpolated: list[tuple[KeyPath, Node]]) -> None:
        from omegaconf import OmegaConf  # Imported on use: most configs have no interpolation.

        self._values = values
        self._interpolated = interpolated
        self._unresolved = set(range(len(interpolated)))
        self._needed: int | None = None  # the placeholder that was used
        self._size = 0  # characters of all results
        self._problems: dict[int, Problem] = {}
        self._conf = OmegaConf.create(values)
        for index in self._unresolved:
            self._store(index, f"${{{PLACEHOLDER}:{index}}}")

    def resolve(self) -> Any:
        """Return the values, or raise ConfigError with all problems."""
        from omegaconf import OmegaConf

        OmegaConf.register_new_resolver(PLACEHOLDER, self._note_use, replace=True)
        try:
            for index in range(len(self._interpolated)):
                self._resolve_with_needs(index)
            if self._problems:
                raise ConfigError([self._problems[index] for index in sorted(self._problems)])
            return OmegaConf.to_container(self._conf, resolve=True)
        finally:
            OmegaConf.clear_resolver(PLACEHOLDER)

    def _resolve_with_needs(self, first: int) -> None:
        """Resolve a value after those that it refers to."""
        stack = [first]
        while stack:
            index = stack[-1]
            if index not in self._unresolved or index in self._problems:
                stack.pop()
                continue
            needed = self._try(index)
            if needed is None:
                continue
            if needed in self._problems:
                self._fail(index, f"refers to {self._name(needed)}, which cannot be resolved")
            elif needed in stack:
                self._fail(index, f"refers to itself through {self._name(needed)}")
            else:
                stack.append(needed)

    def _try(self, index: int) -> int | None:
        """Resolve a value, or return the unresolved one that it needs first."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        path, node = self._interpolated[index]
        self._needed = None
        self._store(index, node.value)
        try:
            found: Any = self._conf
            for part in path:
                found = found[part]
            if OmegaConf.is_config(found):
                found = OmegaConf.to_container(found, resolve=True)
        except OmegaConfBaseException as error:
            if self._needed is None:
                self._problems[index] = _unresolved(path, node, error, self._values)
            found = None
        if self._needed is not None or index in self._problems:
            self._store(index, f"${{{PLACEHOLDER}:{index}}}")
            return self._needed
        self._size += _size(found)
        limit = MAX_EXPANDED_CHARACTERS
        if self._size > limit:
            self._fail(index, f"interpolations expand to more than {limit:,} characters")
            found = None
        self._store(index, escape_interpolations(found))
        self._unresolved.discard(index)
        return None

    def _note_use(self, index: int) -> None:
        self._needed = index
        raise LookupError("not resolved yet")

    def _store(self, index: int, value: Any) -> None:
        path = self._interpolated[index][0]
        parent: Any = self._conf
        for part in path[:-1]:
            parent = parent[part]
        parent[path[-1]] = value

    def _fail(self, index: int, message: str) -> None:
        path, node = self._interpolated[index]
        self._problems[index] = _problem(path, node, message)

    def _name(self, index: int) -> str:
        return dotted(self._interpolated[index][0])


def _size(value: Any) -> int:
    """Return the characters of a value; each entry of a container counts extra."""
    if isinstance(value, dict):
        return sum(ENTRY_CHARACTERS + _size(item) for item in value.values())
    if isinstance(value, list):
        return sum(ENTRY_CHARACTERS + _size(item) for item in value)
    return len(str(value))


def escape_interpolations(value: Any) -> Any:
    """Escape `${` in resolved values, which are not interpolations."""
    if isinstance(value, dict):
        return {key: escape_interpolations(item) for key, item in value.items()}
    if isinstance(value, list):
        return [escape_interpolations(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)
    return value


def _problem(path: KeyPath, node: Node, message: str, **about: Any) -> Problem:
    location = node.location
    return Problem(mask_text(message), path, location.file, location.line, **about)


def _unresolved(path: KeyPath, node: Node, error: Exception, values: Any) -> Problem:
    """Return the problem of an interpolation that OmegaConf rejects; its errors have no fields."""
    message = re.sub(r"^\w+ raised while resolving interpolation: ", "", _first_line(error))
    message = message.strip('"')
    missing = re.fullmatch(r"Interpolation key '(.*)' not found", message)
    if missing is None:
        return _problem(path, node, message)
    suggestion = suggest(missing[1], values)
    return _problem(path, node, f"there is no key {missing[1]!r}", suggestion=suggestion)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
