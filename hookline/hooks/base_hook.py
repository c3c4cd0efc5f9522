"""The base class of all hooks, re-exported from the engine under its documented path."""

from hookline.engine import HOOKS, BaseHook, BaseRunner, Hook, Priority, get_priority, state

__all__ = ["HOOKS", "BaseHook", "BaseRunner", "Hook", "Priority", "get_priority", "state"]
