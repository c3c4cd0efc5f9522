"""Code written for other frameworks, running unchanged. It sits on top of everything; nothing else imports it."""

from hookline.compat.install import install, uninstall

__all__ = ["install", "uninstall"]
