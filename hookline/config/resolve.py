"""Resolve interpolations such as `${work_dir}/x` and `${oc.env:HOME}` with OmegaConf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hookline.config.locations import Config, Node
from hookline.errors import ConfigError, KeyPath, Problem, suggest
from hookline.secrets import mask_text


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
    from omegaconf import OmegaConf  # Imported on use: most configs have no interpolation.
    from omegaconf.errors import OmegaConfBaseException

    problems = list(_unreadable(interpolated))
    if problems:
        raise ConfigError(problems)
    conf = OmegaConf.create(values)
    for path, node in interpolated:
        try:
            found: Any = conf
            for part in path:
                found = found[part]
        except OmegaConfBaseException as error:
            problems.append(_unresolved(path, node, error, values))
    if problems:
        raise ConfigError(problems)
    return OmegaConf.to_container(conf, resolve=True)


def _unreadable(interpolated: list[tuple[KeyPath, Node]]) -> Iterator[Problem]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for path, node in interpolated:
        try:
            OmegaConf.create({"value": node.value})
        except OmegaConfBaseException as error:
            yield _problem(path, node, f"cannot be read: {_first_line(error)}")


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
