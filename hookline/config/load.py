"""A config from a file: bases, overrides and interpolation, with the place of every value kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

from hookline.config.files import read_file
from hookline.config.hook_list import merge_hooks
from hookline.config.override import apply_override
from hookline.config.places import Config, Node, Place, merge
from hookline.config.resolve import resolve
from hookline.errors import Path


def load_config(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Iterable[str] = ()) -> Config:
    """The config of a YAML, JSON or TOML file (or a mapping), with its bases and `key=value` overrides applied.

    What is written wrong raises ConfigError; whether the config makes sense is for `hookline.config.check` to say.
    """
    if isinstance(source, Mapping):
        file = getattr(source, "file", None)
        root = _with_bases(Node.of(source, _places_of(source)), FilePath(file or "config"), ())
    else:
        file = os.fspath(source)
        root = _with_bases(read_file(FilePath(file)), FilePath(file), ())
    for text in overrides:
        apply_override(root, text)
    root.value.setdefault("work_dir", Node(f"runs/{FilePath(file).stem if file else 'default'}", (file, 1 if file else None)))
    if "experiment_dir" in root.value:
        root.value["experiment_dir"] = root.value["work_dir"]
    return resolve(root, file)


def _with_bases(root: Node, path: FilePath, chain: tuple[FilePath, ...]) -> Node:
    """The mapping of a file over the mappings of the files that its `base` names."""
    _unite_work_dir(root)
    base = root.value.pop("base", None)
    merged = Node({}, root.place)
    for name in _base_names(base):
        base_path = path.parent / name.value
        seen = (*chain, path)
        if base_path.resolve() in [earlier.resolve() for earlier in seen]:
            circle = " → ".join(str(each) for each in (*seen, base_path))
            raise name.error(f"a config cannot be its own base: {circle}", ("base",))
        merged = _over(merged, _with_bases(read_file(base_path, name.place), base_path, seen))
    return _over(merged, root)


def _over(base: Node, child: Node) -> Node:
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
        if not isinstance(name.value, str):
            raise name.error(f"must be the name of a file or a list of them, got {name.plain()!r}", ("base",))
    return names


def _unite_work_dir(root: Node) -> None:
    """`experiment_dir` is another name of `work_dir`."""
    alias, own = root.value.get("experiment_dir"), root.value.get("work_dir")
    if alias is None:
        return
    if own is not None and own.value != alias.value:
        raise alias.error(f"is the same as work_dir, but {alias.plain()!r} is not {own.plain()!r}", ("experiment_dir",))
    root.value["work_dir"] = alias


def _places_of(source: Mapping[str, Any]) -> Any:
    if isinstance(source, Config):
        return source.place

    def nowhere(path: Path) -> Place:
        return None, None

    return nowhere
