"""`HookRegistry`: the registry of Hookline, so that a config finds the hooks of both."""

from hookline.compat.missing import not_covered
from hookline.engine import HOOKS as HookRegistry

__all__ = ["HookRegistry"]

__getattr__ = not_covered(__name__, __all__)
