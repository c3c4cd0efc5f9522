"""`load_config`, which reads the same keys as everywhere in Hookline."""

from hookline.compat.missing import not_covered
from hookline.config import load_config

__all__ = ["load_config"]

__getattr__ = not_covered(__name__, __all__)
