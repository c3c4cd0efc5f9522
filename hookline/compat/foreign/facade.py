"""Stand-ins for the objects that a foreign callback is handed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.compat.foreign.hook import ForeignHook


class MissingAttribute(HooklineError, AttributeError):
    """A callback asked for something that the object which stands in for its framework's does not have."""


class Facade:
    """Stands in for an object of another framework, for one callback: a missing attribute is an error that says whose it is."""

    stands_for: ClassVar[str] = ""  # what the framework calls the object: `trainer`, `state`

    def __init__(self, hook: ForeignHook) -> None:
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        raise missing(self, name)


def missing(facade: Any, name: str) -> AttributeError:
    """The error for an attribute that a facade lacks; `hasattr` and `getattr` with a default work as they should."""
    hook = facade.__dict__.get("_hook")
    if hook is None or (name.startswith("__") and name.endswith("__")):
        return AttributeError(name)
    return MissingAttribute(
        f"{type(hook.callback).__name__} asks for `{facade.stands_for}.{name}` of {hook.framework} {hook.version()}, for which "
        f"Hookline has no stand-in: this callback cannot run here, or not with these options (docs/foreign-callbacks.md)"
    )
