"""Load a config from a file or mapping, with its bases, overrides and interpolations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hookline.config.files import read_file
from hookline.config.hook_list import merge_hooks
from hookline.config.locations import Config, Node, SourceLocation, merge
from hookline.config.override import apply_override
from hookline.config.resolve import resolve
from hookline.errors import KeyPath

MAX_BASES = 100  # files that a config is merged from; two bases on each of 30 levels are 2**30


def load_config(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Iterable[str] = ()
) -> Config:
    """Load a YAML, JSON or TOML file (or a mapping), apply its bases and `key=value` overrides.

    This checks the syntax only; `hookline.config.check` checks the values.

    Raises:
        ConfigError: If a file cannot be read or an override or interpolation is wrong.
    """
    file: str | None
    if isinstance(source, Mapping):
        file = getattr(source, "file", None)
        root = _Bases().merged(Node.of(source, _locator(source)), Path(file or "config"), ())
    else:
        file = os.fspath(source)
        root = _Bases().merged(read_file(Path(file)), Path(file), ())
    for text in overrides:
        apply_override(root, text)
    _default_work_dir(root, file)
    return resolve(root, file)


def _default_work_dir(root: Node, file: str | None) -> None:
    """Set `work_dir` to `runs/` and the name of the config, unless it is given."""
    name = Path(file).stem if file else "default"
    location = SourceLocation(file, 1) if file else SourceLocation()
    root.value.setdefault("work_dir", Node(f"runs/{name}", location))
    if "experiment_dir" in root.value:
        root.value["experiment_dir"] = root.value["work_dir"]


class _Bases:
    """The files that the `base` of a config names, and those that they name in turn."""

    def __init__(self) -> None:
        self._count = 0

    def merged(self, root: Node, path: Path, chain: tuple[Path, ...]) -> Node:
        """Merge a file's mapping into the mappings of the files that its `base` names."""
        _apply_work_dir_alias(root)
        base = root.value.pop("base", None)
        merged = Node({}, root.location)
        for name in _base_names(base):
            base_path = path.parent / name.value
            seen = (*chain, path)
            if os.path.realpath(base_path) in [os.path.realpath(earlier) for earlier in seen]:
                cycle = " → ".join(str(each) for each in (*seen, base_path))
                raise name.error(f"a config cannot be its own base: {cycle}", ("base",))
            self._count += 1
            if self._count > MAX_BASES:
                raise name.error(f"a config may have at most {MAX_BASES} bases", ("base",))
            content = read_file(base_path, name.location)
            merged = _merge_config(merged, self.merged(content, base_path, seen))
        return _merge_config(merged, root)


def _merge_config(base: Node, child: Node) -> Node:
    hooks = child.value.pop("hooks", None)
    merged = merge(base, child)
    if hooks is not None:
        merge_hooks(merged, hooks)
    return merged


def _base_names(base: Node | None) -> list[Node]:
    if base is None or base.value is None:
        return []
    names = base.value if isinstance(base.value, list) else [base]
    for name in names:
        if not isinstance(name.value, str) or "\0" in name.value:
            message = "must be the name of a file or a list of them"
            raise name.error(message, ("base",), value=name.plain())
    return names


def _apply_work_dir_alias(root: Node) -> None:
    """Use `experiment_dir` as `work_dir`; raise if both are given and differ."""
    alias = root.value.get("experiment_dir")
    work_dir = root.value.get("work_dir")
    if alias is None:
        return
    if work_dir is not None and work_dir.value != alias.value:
        message = f"must equal work_dir, which is {work_dir.plain()!r}"
        raise alias.error(message, ("experiment_dir",), value=alias.plain())
    root.value["work_dir"] = alias


def _locator(source: Mapping[str, Any]) -> Callable[[KeyPath], SourceLocation]:
    if isinstance(source, Config):
        return source.location
    return lambda path: SourceLocation()
