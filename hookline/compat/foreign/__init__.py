"""Shared parts of the adapters that run callbacks of other frameworks."""

from hookline.compat.foreign.facade import Facade, MissingAttribute
from hookline.compat.foreign.files import Files
from hookline.compat.foreign.hook import ForeignHook
from hookline.compat.foreign.metrics import AliasedMetrics
from hookline.compat.foreign.state import ChangedAttributes

__all__ = [
    "AliasedMetrics",
    "ChangedAttributes",
    "Facade",
    "Files",
    "ForeignHook",
    "MissingAttribute",
]
