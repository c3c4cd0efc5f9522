"""The built-in hooks, and functions that build hooks from a config.

`__init__.pyi` lists the names. Each one is imported on first use: a run needs a few hooks, and some
of them import large packages.
"""

import lazy_loader

from hookline.engine import HOOKS

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

HOOKS.add_lazy(__all__, __getattr__)
