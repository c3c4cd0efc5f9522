"""The interface of `dl_framework`: trainer, hooks with their registry, and `load_config`."""

from hookline.compat.missing import not_covered

__getattr__ = not_covered(__name__, ["hooks", "trainers", "utils"])
