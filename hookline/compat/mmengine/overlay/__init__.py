"""The modules of an installed MMEngine that Hookline replaces; all others are the real ones.

The names of replaced modules begin with `original_`: `mmengine.runner.original_runner`.
"""

# The module of MMEngine, and the module of `hookline.compat.mmengine` in its place.
REPLACED = {
    "hooks.checkpoint_hook": "overlay.checkpoint_hook",
    "hooks.early_stopping_hook": "overlay.early_stopping_hook",
    "hooks.ema_hook": "overlay.ema_hook",
    "hooks.hook": "hooks.hook",
    "logging.history_buffer": "logging.history_buffer",
    "optim.optimizer.optimizer_wrapper": "overlay.optimizer_wrapper",
    "runner.loops": "overlay.loops",
    "runner.priority": "overlay.priority",
    "runner.runner": "overlay.runner",
}
