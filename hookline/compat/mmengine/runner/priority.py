"""Priorities, the same as Hookline's."""

from hookline.priority import Priority, get_priority

__all__ = ["Priority", "get_priority"]
