"""Run code written for other frameworks. No other part of Hookline imports this package."""

from hookline.compat.install import install, uninstall

__all__ = ["install", "uninstall"]
