"""What the wrappers of other frameworks' callbacks have in common."""

from hookline.compat.foreign.facade import Facade, MissingAttribute
from hookline.compat.foreign.files import Files
from hookline.compat.foreign.hook import ForeignHook
from hookline.compat.foreign.state import ChangedAttributes, plain_part

__all__ = ["ChangedAttributes", "Facade", "Files", "ForeignHook", "MissingAttribute", "plain_part"]
