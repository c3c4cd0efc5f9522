"""`${work_dir}/x` and `${oc.env:HOME}`: interpolation, done by OmegaConf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hookline.config.places import Config, Node
from hookline.errors import ConfigError, Path, Problem, suggest
from hookline.secrets import mask_text


def resolve(root: Node, file: str | None) -> Config:
    """The config that the nodes stand for; ConfigError lists every interpolation that fails, with its place."""
    places = {path: node.place for path, node in root.walk() if path}
    values = root.plain()
    open_values = [(path, node) for path, node in root.leaves() if isinstance(node.value, str)]
    unset = [_problem(path, node, "a value must be given here") for path, node in open_values if node.value == "???"]
    if unset:
        raise ConfigError(unset)
    open_values = [(path, node) for path, node in open_values if "${" in node.value]
    return Config(_interpolated(values, open_values) if open_values else values, file, places)


def _interpolated(values: Any, open_values: list[tuple[Path, Node]]) -> Any:
    from omegaconf import OmegaConf  # only where it is needed: most configs hold no interpolation
    from omegaconf.errors import OmegaConfBaseException

    problems = list(_unreadable(open_values))
    if problems:
        raise ConfigError(problems)
    conf = OmegaConf.create(values)
    for path, node in open_values:
        try:
            found: Any = conf
            for part in path:
                found = found[part]
        except OmegaConfBaseException as error:
            problems.append(_problem(path, node, _explained(error, values)))
    if problems:
        raise ConfigError(problems)
    return OmegaConf.to_container(conf, resolve=True)


def _unreadable(open_values: list[tuple[Path, Node]]) -> Iterator[Problem]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for path, node in open_values:
        try:
            OmegaConf.create({"value": node.value})
        except OmegaConfBaseException as error:
            yield _problem(path, node, f"cannot be read: {_first_line(error)}")


def _problem(path: Path, node: Node, message: str) -> Problem:
    return Problem(mask_text(message), path, *node.place)


def _explained(error: Exception, values: Any) -> str:
    message = re.sub(r"^\w+ raised while resolving interpolation: ", "", _first_line(error)).strip('"')
    missing = re.fullmatch(r"Interpolation key '(.*)' not found", message)
    return message if missing is None else f"there is no {missing[1]!r}{suggest(missing[1], values)}"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
