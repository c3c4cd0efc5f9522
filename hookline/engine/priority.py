"""Priorities: the smaller the value, the further outside a hook wraps the others."""

from __future__ import annotations

from enum import IntEnum

from hookline.errors import suggest


class Priority(IntEnum):
    """The named priorities."""

    HIGHEST = 0
    VERY_HIGH = 10
    HIGH = 30
    ABOVE_NORMAL = 40
    NORMAL = 50
    BELOW_NORMAL = 60
    LOW = 70
    VERY_LOW = 90
    LOWEST = 100


def get_priority(value: int | str | Priority) -> int:
    """The number of a priority given as a number from 0 to 100 or by name."""
    if isinstance(value, str):
        if value.upper() not in Priority.__members__:
            raise ValueError(f"unknown priority {value!r}{suggest(value, Priority.__members__)}")
        return int(Priority[value.upper()])
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a priority is a number from 0 to 100 or a name such as 'NORMAL', got {value!r}")
    if not 0 <= value <= 100:
        raise ValueError(f"a priority lies between 0 and 100, got {value}")
    return int(value)
