"""Changes to a config from the command line: `training.epochs=3`, `hooks.ema=null`, `+hooks.x.type=EMAHook`."""

from __future__ import annotations

import re
from typing import Any

from hookline.config.hook_list import default_hook, find_hook, hook_names, hook_nodes, merge_hooks, put_hook
from hookline.config.places import COMMAND_LINE, Node, error_at
from hookline.config.schema import COMPONENTS, known_keys, suggest_key
from hookline.config.yaml_marks import parse_yaml
from hookline.errors import ConfigError, Path, dotted, suggest


def apply_override(root: Node, text: str) -> None:
    """Change `root` as one `key=value` says; a leading `+` adds a key that is not there yet."""
    add, path, value = _parse(text)
    if path[0] == "experiment_dir":
        path = ("work_dir", *path[1:])
    if path[0] == "hooks" and len(path) > 1:
        _override_hook(root, str(path[1]), path[2:], value, add)
    elif path == ("hooks",):
        root.value["hooks"] = Node([], COMMAND_LINE)
        merge_hooks(root, value)
    else:
        _assign(root, (), path, value, add)


def _parse(text: str) -> tuple[bool, Path, Node]:
    key, equals, raw = text.partition("=")
    add = key.startswith("+")
    parts = tuple(re.sub(r"\[(\d+)\]", r".\1", key.removeprefix("+").strip()).split("."))
    if not equals or not all(parts):
        shown = key if len(key) < 60 else f"{key[:60]}…"
        raise error_at(COMMAND_LINE, f"{shown!r} is no override; one looks like training.epochs=3")
    try:
        value = parse_yaml(raw, "command line", lines=False)
    except ConfigError as error:
        raise error_at(COMMAND_LINE, error.problems[0].message, parts) from error
    return add, parts, value or Node(None, COMMAND_LINE)


def _assign(node: Node, above: Path, path: Path, value: Node, add: bool) -> None:
    """Set `path` below `node`, which itself is at `above`."""
    key: Any = path[0]
    if above in COMPONENTS and isinstance(node.value, str):
        node.value = {"type": Node(node.value, node.place)}
    if isinstance(node.value, list):
        key = _index(node.value, above, str(key))
    elif not isinstance(node.value, dict):
        raise error_at(COMMAND_LINE, f"{dotted(above)} is not a mapping", (*above, *path))
    elif key not in node.value and str(key).isdigit() and int(key) in node.value:
        key = int(key)
    if isinstance(node.value, dict) and key not in node.value:
        known = known_keys(above)
        if not add and known is not None and key not in known:
            hint = suggest_key(str(key), above, {*known, *map(str, node.value)})
            raise error_at(COMMAND_LINE, f"unknown key {key!r}{hint}", (*above, *path))
        node.value[key] = Node({}, COMMAND_LINE)
    if len(path) == 1:
        node.value[key] = value
        return
    if node.value[key].value is None:
        node.value[key] = Node({}, COMMAND_LINE)
    _assign(node.value[key], (*above, key), path[1:], value, add)


def _index(items: list[Node], above: Path, key: str) -> int:
    if not key.isdigit() or int(key) >= len(items):
        raise error_at(COMMAND_LINE, f"{dotted(above)} is a list with {len(items)} items, numbered from 0; got {key!r}", (*above, key))
    return int(key)


def _override_hook(root: Node, key: str, rest: Path, value: Node, add: bool) -> None:
    hooks = hook_nodes(root, COMMAND_LINE)
    index = find_hook(hooks, key, COMMAND_LINE)
    if index is None and not add and default_hook(key) is None:
        hint = suggest(key, hook_names(hooks))
        raise error_at(COMMAND_LINE, f"there is no hook {key!r}{hint} (+hooks.{key}.type=… adds one)", ("hooks", key, *rest))
    if not rest:
        put_hook(root, key, value)
        return
    if index is None:
        new: dict[str, Node] = {"type": value} if rest == ("type",) else {}
        put_hook(root, key, Node(new, COMMAND_LINE))
        index = len(hooks) - 1
    _assign(hooks[index], ("hooks", index), rest, value, add)
