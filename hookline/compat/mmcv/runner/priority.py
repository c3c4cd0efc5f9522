"""The priorities of hooks: nine names, or a number from 0 to 100."""

from hookline.engine import Priority, get_priority

__all__ = ["Priority", "get_priority"]
