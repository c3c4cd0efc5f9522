"""`HookRegistry.register("Name")`: Hookline's own registry, so that a config finds hooks of both kinds."""

from hookline.compat.missing import not_covered
from hookline.engine import HOOKS as HookRegistry

__all__ = ["HookRegistry"]

__getattr__ = not_covered(__name__, __all__)
