"""The base of all hooks, under the name the documents give its file; the class itself is the engine's."""

from hookline.engine import HOOKS, BaseHook, BaseRunner, Hook, Priority, get_priority, state

__all__ = ["HOOKS", "BaseHook", "BaseRunner", "Hook", "Priority", "get_priority", "state"]
