"""Apply overrides of the command line: `training.epochs=3`, `+hooks.x.type=EMAHook`."""

from __future__ import annotations

import re
from typing import Any

from hookline.config.hook_list import (
    default_hook,
    find_hook,
    hook_names,
    hook_nodes,
    merge_hooks,
    put_hook,
)
from hookline.config.locations import COMMAND_LINE, Node, error_at
from hookline.config.schema import COMPONENTS, known_keys, suggest_key
from hookline.config.yaml_marks import parse_yaml
from hookline.errors import ConfigError, KeyPath, dotted, suggest

MAX_SHOWN_CHARACTERS = 60  # of a malformed override in an error message


def apply_override(root: Node, text: str) -> None:
    """Apply one `key=value` to `root`; a leading `+` adds a key that does not exist yet."""
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


def _parse(text: str) -> tuple[bool, KeyPath, Node]:
    key, equals, raw = text.partition("=")
    add = key.startswith("+")
    parts = tuple(re.sub(r"\[(\d+)\]", r".\1", key.removeprefix("+").strip()).split("."))
    if not equals or not all(parts):
        shown = key
        if len(key) > MAX_SHOWN_CHARACTERS:
            shown = f"{key[:MAX_SHOWN_CHARACTERS]}…"
        message = f"{shown!r} is not an override; write key=value, such as training.epochs=3"
        raise error_at(COMMAND_LINE, message)
    try:
        value = parse_yaml(raw, "command line", lines=False)
    except ConfigError as error:
        raise error_at(COMMAND_LINE, error.problems[0].message, parts) from error
    return add, parts, value or Node(None, COMMAND_LINE)


def _assign(node: Node, above: KeyPath, path: KeyPath, value: Node, add: bool) -> None:
    """Set `path` below `node`, which is at `above`."""
    key: Any = path[0]
    if above in COMPONENTS and isinstance(node.value, str):
        node.value = {"type": Node(node.value, node.location)}
    if isinstance(node.value, list):
        key = _index(node.value, above, str(key))
    elif not isinstance(node.value, dict):
        raise error_at(COMMAND_LINE, f"{dotted(above)} is not a mapping", (*above, *path))
    else:
        key = _key(node.value, above, path, add)
        node.value.setdefault(key, Node({}, COMMAND_LINE))
    if len(path) == 1:
        node.value[key] = value
        return
    if node.value[key].value is None:
        node.value[key] = Node({}, COMMAND_LINE)
    _assign(node.value[key], (*above, key), path[1:], value, add)


def _key(mapping: dict[Any, Node], above: KeyPath, path: KeyPath, add: bool) -> Any:
    """Return the mapping's key for the first part of `path`; raise if it is unknown."""
    key = path[0]
    if key in mapping:
        return key
    if str(key).isdigit() and int(key) in mapping:
        return int(key)
    known = known_keys(above)
    if not add and known is not None and key not in known:
        suggestion = suggest_key(str(key), above, {*known, *map(str, mapping)})
        about = {"parameter": str(key), "suggestion": suggestion}
        raise error_at(COMMAND_LINE, f"unknown key {key!r}", (*above, *path), **about)
    return key


def _index(items: list[Node], above: KeyPath, key: str) -> int:
    if not key.isdigit() or int(key) >= len(items):
        message = f"{dotted(above)} is a list of {len(items)} items, numbered from 0"
        raise error_at(COMMAND_LINE, message, (*above, key), value=key)
    return int(key)


def _override_hook(root: Node, key: str, rest: KeyPath, value: Node, add: bool) -> None:
    hooks = hook_nodes(root, COMMAND_LINE)
    index = find_hook(hooks, key, COMMAND_LINE)
    if index is None and not add and default_hook(key) is None:
        message = f"there is no hook {key!r} (+hooks.{key}.type=… adds one)"
        suggestion = suggest(key, hook_names(hooks))
        raise error_at(COMMAND_LINE, message, ("hooks", key, *rest), suggestion=suggestion)
    if not rest:
        put_hook(root, key, value)
        return
    if index is None:
        new: dict[str, Node] = {"type": value} if rest == ("type",) else {}
        put_hook(root, key, Node(new, COMMAND_LINE))
        index = len(hooks) - 1
    _assign(hooks[index], ("hooks", index), rest, value, add)
