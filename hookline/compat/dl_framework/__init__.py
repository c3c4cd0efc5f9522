"""The interface of `dl_framework`: `trainers.BaseTrainer`, `utils.load_config`, `hooks.BaseHook`, `hooks.registry.HookRegistry`."""

from hookline.compat.missing import not_covered

__getattr__ = not_covered(__name__, ["hooks", "trainers", "utils"])
