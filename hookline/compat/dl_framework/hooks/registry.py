"""`HookRegistry.register("Name")`: Hookline's own registry, so that a config finds hooks of both kinds."""

from hookline.engine import HOOKS as HookRegistry

__all__ = ["HookRegistry"]
