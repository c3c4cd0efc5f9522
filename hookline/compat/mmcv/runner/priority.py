"""Priorities: nine names with numbers, or any number from 0 to 100."""

from hookline.engine import Priority, get_priority

__all__ = ["Priority", "get_priority"]
