"""The `hooks` of a config while it is put together: found by name, changed, added, dropped."""

from __future__ import annotations

import re
from collections.abc import Callable

from hookline.config.places import Node, Place, error_at, merge
from hookline.errors import suggest
from hookline.hooks.builder import DEFAULT_HOOKS


def merge_hooks(root: Node, given: Node) -> None:
    """Put the `hooks` of a file over those in `root`: a list replaces them, a mapping changes them by name."""
    if isinstance(given.value, dict):
        for key, node in given.value.items():
            put_hook(root, str(key), node)
    elif isinstance(given.value, list):
        root.value["hooks"] = Node([_as_mapping(node) for node in given.value], given.place)
    else:
        root.value["hooks"] = Node([], given.place) if given.value is None else given


def put_hook(root: Node, key: str, node: Node) -> None:
    """Merge a mapping into the hook `key`, which is added if there is none; null drops it."""
    if node.value is None:
        drop_hook(root, key, node.place)
        return
    node = _as_mapping(node)
    hooks = hook_nodes(root, node.place)
    index = find_hook(hooks, key, node.place)
    if index is not None:
        changed = merge(hooks[index], node)
        if isinstance(changed.value, dict) and "name" in hooks[index].value:
            changed.value.setdefault("name", hooks[index].value["name"])
        hooks[index] = changed
    elif isinstance(node.value, dict):
        hooks.append(_new_hook(root, key, node))
    else:
        hooks.append(node)


def drop_hook(root: Node, key: str, place: Place) -> None:
    """Take a hook out; a default one is also listed in `drop_hooks`, so that it does not come back."""
    hooks = hook_nodes(root, place)
    index = find_hook(hooks, key, place)
    type_name = default_hook(key) if index is None else _class_name(hooks[index])
    if index is not None:
        del hooks[index]
    elif type_name is None:
        raise error_at(place, f"there is no hook {key!r} to drop{suggest(key, hook_names(hooks))}", ("hooks", key))
    dropped = root.value.setdefault("drop_hooks", Node([], place))
    others = [_class_name(hook) for hook in hooks]
    if type_name in DEFAULT_HOOKS and type_name not in others and isinstance(dropped.value, list):
        dropped.value[:] = [*(item for item in dropped.value if item.value != type_name), Node(type_name, place)]
    if dropped.value == []:
        del root.value["drop_hooks"]


def hook_nodes(root: Node, place: Place) -> list[Node]:
    """The nodes of the hooks in `root`, to be changed in place."""
    node = root.value.setdefault("hooks", Node([], place))
    if not isinstance(node.value, list):
        raise node.error("must be a list or a mapping of hooks", ("hooks",))
    hooks: list[Node] = node.value
    return hooks


def find_hook(hooks: list[Node], key: str, place: Place) -> int | None:
    """The index of the hook with that name, or else that type, or else that short form of its type."""
    if key.isdigit():
        if int(key) >= len(hooks):
            raise error_at(place, f"there is no hook {key}, the list has {len(hooks)}", ("hooks",))
        return int(key)
    tests: tuple[Callable[[Node], bool], ...] = (
        lambda hook: hook.text("name") == key,
        lambda hook: key in (hook.text("type"), _class_name(hook)),
        lambda hook: _folded(_class_name(hook)) == _folded(key),
    )
    for matches in tests:
        found = [index for index, hook in enumerate(hooks) if matches(hook)]
        if len(found) > 1:
            raise error_at(place, f"{key!r} could be any of hooks {found}; use the number, or give them a name", ("hooks", key))
        if found:
            return found[0]
    return None


def default_hook(key: str) -> str | None:
    """The class of the default hook that `key` means, if it means one."""
    return next((name for name in DEFAULT_HOOKS if _folded(name) == _folded(key)), None)


def hook_names(hooks: list[Node]) -> list[str]:
    """What a user may call the hooks, the default ones included."""
    types = [*(_class_name(hook) for hook in hooks), *DEFAULT_HOOKS]
    return [*filter(None, (hook.text("name") for hook in hooks)), *(short_name(name) for name in types if name)]


def short_name(type_name: str) -> str:
    """`EarlyStoppingHook` as `early_stopping`."""
    stem = type_name.rpartition(".")[2].removesuffix("Hook")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()


def _new_hook(root: Node, key: str, node: Node) -> Node:
    type_name = default_hook(key)
    if "type" in node.value or type_name is None:
        own = {name: node.value[name] for name in ("type",) if name in node.value}
        return Node({**own, "name": Node(key, node.place), **node.value}, node.place)
    dropped = root.value.get("drop_hooks")
    if dropped is not None and isinstance(dropped.value, list):
        dropped.value[:] = [item for item in dropped.value if item.value != type_name]
    return Node({"type": Node(type_name, node.place), **node.value}, node.place)


def _as_mapping(node: Node) -> Node:
    return Node({"type": node}, node.place) if isinstance(node.value, str) else node


def _class_name(hook: Node) -> str:
    return (hook.text("type") or "").rpartition(".")[2]


def _folded(name: str) -> str:
    return name.removesuffix("Hook").replace("_", "").lower()
