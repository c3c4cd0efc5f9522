"""Find, change, add and drop hooks in the `hooks` list of a config that is being loaded."""

from __future__ import annotations

import re
from collections.abc import Callable

from hookline.config.locations import Node, SourceLocation, error_at, merge
from hookline.errors import suggest
from hookline.hooks.builder import DEFAULT_HOOKS


def merge_hooks(root: Node, given: Node) -> None:
    """Merge the `hooks` of a file into `root`: a list replaces, a mapping changes hooks by name."""
    if isinstance(given.value, dict):
        for key, node in given.value.items():
            put_hook(root, str(key), node)
    elif isinstance(given.value, list):
        root.value["hooks"] = Node([_as_mapping(node) for node in given.value], given.location)
    elif given.value is None:
        root.value["hooks"] = Node([], given.location)
    else:
        root.value["hooks"] = given


def put_hook(root: Node, key: str, node: Node) -> None:
    """Merge a mapping into the hook `key`, or add that hook; null drops it."""
    if node.value is None:
        drop_hook(root, key, node.location)
        return
    node = _as_mapping(node)
    hooks = hook_nodes(root, node.location)
    index = find_hook(hooks, key, node.location)
    if index is not None:
        changed = merge(hooks[index], node)
        if isinstance(changed.value, dict) and "name" in hooks[index].value:
            changed.value.setdefault("name", hooks[index].value["name"])
        hooks[index] = changed
    elif isinstance(node.value, dict):
        hooks.append(_new_hook(root, key, node))
    else:
        hooks.append(node)


def drop_hook(root: Node, key: str, location: SourceLocation) -> None:
    """Remove a hook; a default hook is also listed in `drop_hooks`, so that it stays out."""
    hooks = hook_nodes(root, location)
    index = find_hook(hooks, key, location)
    if index is not None:
        type_name: str | None = _class_name(hooks[index])
        del hooks[index]
    else:
        type_name = default_hook(key)
        if type_name is None:
            suggestion = suggest(key, hook_names(hooks))
            message = f"there is no hook {key!r} to drop"
            raise error_at(location, message, ("hooks", key), suggestion=suggestion)
    others = [_class_name(hook) for hook in hooks]
    if type_name in DEFAULT_HOOKS and type_name not in others:
        dropped = root.value.setdefault("drop_hooks", Node([], location))
        if isinstance(dropped.value, list):
            _remove(dropped, type_name)
            dropped.value.append(Node(type_name, location))


def hook_nodes(root: Node, location: SourceLocation) -> list[Node]:
    """Return the nodes of the hooks in `root`; changes of the list change `root`."""
    node = root.value.setdefault("hooks", Node([], location))
    if not isinstance(node.value, list):
        raise node.error("must be a list or a mapping of hooks", ("hooks",))
    hooks: list[Node] = node.value
    return hooks


def find_hook(hooks: list[Node], key: str, location: SourceLocation) -> int | None:
    """Return the index of a hook by its number, name, type or short type, tried in this order."""
    if key.isdigit():
        if int(key) >= len(hooks):
            message = f"there is no hook {key}; the list has {len(hooks)} hooks"
            raise error_at(location, message, ("hooks", key))
        return int(key)
    tests: tuple[Callable[[Node], bool], ...] = (
        lambda hook: hook.text("name") == key,
        lambda hook: key in (hook.text("type"), _class_name(hook)),
        lambda hook: _folded(_class_name(hook)) == _folded(key),
    )
    for matches in tests:
        found = [index for index, hook in enumerate(hooks) if matches(hook)]
        if len(found) > 1:
            message = f"{key!r} matches hooks {found}; use a number, or name the hooks"
            raise error_at(location, message, ("hooks", key))
        if found:
            return found[0]
    return None


def default_hook(key: str) -> str | None:
    """Return the class name of the default hook with a (short) name, or None."""
    for name in DEFAULT_HOOKS:
        if _folded(name) == _folded(key):
            return name
    return None


def hook_names(hooks: list[Node]) -> list[str]:
    """Return the names that a user may use for these hooks and the default ones."""
    given = [hook.text("name") for hook in hooks]
    types = [*(_class_name(hook) for hook in hooks), *DEFAULT_HOOKS]
    return [name for name in given if name] + [short_name(name) for name in types if name]


def short_name(type_name: str) -> str:
    """Return the short name of a hook class: `early_stopping` for `EarlyStoppingHook`."""
    stem = type_name.rpartition(".")[2].removesuffix("Hook")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()


def _new_hook(root: Node, key: str, node: Node) -> Node:
    type_name = default_hook(key)
    if "type" in node.value or type_name is None:
        first = {"type": node.value["type"]} if "type" in node.value else {}
        return Node({**first, "name": Node(key, node.location), **node.value}, node.location)
    dropped = root.value.get("drop_hooks")
    if dropped is not None and isinstance(dropped.value, list):
        _remove(dropped, type_name)
    return Node({"type": Node(type_name, node.location), **node.value}, node.location)


def _remove(names: Node, name: str | None) -> None:
    names.value[:] = [item for item in names.value if item.value != name]


def _as_mapping(node: Node) -> Node:
    return Node({"type": node}, node.location) if isinstance(node.value, str) else node


def _class_name(hook: Node) -> str:
    return (hook.text("type") or "").rpartition(".")[2]


def _folded(name: str) -> str:
    return name.removesuffix("Hook").replace("_", "").lower()
