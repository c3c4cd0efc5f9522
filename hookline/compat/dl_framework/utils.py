"""Loading a config; the same keys mean the same as everywhere in Hookline."""

from hookline.config import load_config

__all__ = ["load_config"]
