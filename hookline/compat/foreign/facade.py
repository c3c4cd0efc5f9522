"""Stand-ins for the objects that a framework passes to its callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.compat.foreign.hook import ForeignHook


class MissingAttribute(HooklineError, AttributeError):
    """A callback reads an attribute that the stand-in for a framework's object lacks."""


class Facade:
    """A stand-in for an object of another framework, made for one callback.

    Reading an attribute that it lacks raises an error that names the callback.
    """

    stands_for: ClassVar[str] = ""  # the framework's name for the object: `trainer`, `state`

    def __init__(self, hook: ForeignHook) -> None:
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(self, name)


def missing_attribute(facade: Any, name: str) -> AttributeError:
    """Return the error for an attribute that a facade lacks.

    It is an AttributeError, so that `hasattr` and `getattr` with a default work.
    """
    hook = facade.__dict__.get("_hook")
    if hook is None or (name.startswith("__") and name.endswith("__")):
        return AttributeError(name)
    callback = type(hook.callback).__name__
    return MissingAttribute(
        f"{callback} needs `{facade.stands_for}.{name}` of {hook.framework} {hook.version()}, "
        "for which Hookline has no stand-in: the callback cannot run here, or not with these "
        "options (docs/foreign-callbacks.md)"
    )
