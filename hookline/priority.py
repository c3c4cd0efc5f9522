"""Priorities of hooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from hookline.errors import ConfigError, suggest


class Priority(IntEnum):
    """Named priorities: a hook with a smaller value wraps those with larger ones."""

    HIGHEST = 0
    VERY_HIGH = 10
    HIGH = 30
    ABOVE_NORMAL = 40
    NORMAL = 50
    BELOW_NORMAL = 60
    LOW = 70
    VERY_LOW = 90
    LOWEST = 100


T = TypeVar("T")

PriorityLike = int | str | Priority  # a number from 0 to 100, or a name


def get_priority(value: PriorityLike) -> int:
    """Return a priority as a number from 0 to 100; it may be given by name."""
    if isinstance(value, str):
        if value.upper() not in Priority.__members__:
            raise ConfigError(
                f"unknown priority {value!r}",
                parameter="priority",
                suggestion=suggest(value, Priority.__members__),
            )
        return int(Priority[value.upper()])
    if not isinstance(value, int) or isinstance(value, bool):
        message = "a priority is a number from 0 to 100 or a name such as 'NORMAL'"
        raise TypeError(f"{message}, got {value!r}")
    if not 0 <= value <= 100:
        message = "a priority lies between 0 and 100"
        raise ConfigError(message, parameter="priority", value=int(value))
    return int(value)


def put_reports_last(site: str, hooks: Sequence[T]) -> Sequence[T]:
    """Return the hooks of a site in order.

    Hooks that report the records of an iteration run at its end, whatever their priorities:
    otherwise a value that another hook records later would be in the report of a later iteration.
    """
    if site != "after_train_iter":
        return hooks
    return sorted(hooks, key=lambda hook: bool(getattr(hook, "reports", False)))


def describe_order(hooks: Mapping[str, Iterable[Any]]) -> str:
    """Return, as text, the hooks of each site with their priorities: `(NORMAL 50) EMAHook`."""
    blocks = []
    for site, members in hooks.items():
        rows = [f"  ({_label(hook.priority):<16}) {hook.name}" for hook in members]
        if rows:
            blocks.append("\n".join([f"{site}:", *rows]))
    return "\n".join(blocks)


def _label(value: PriorityLike) -> str:
    number = get_priority(value)
    name = next((priority.name for priority in Priority if priority == number), "")
    return f"{name} {number}".strip()
