"""Dataclass fields of hooks: state that checkpoints hold, and defaults set by subclasses."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
def state(default: T) -> T: ...


@overload
def state(*, default_factory: Callable[[], T]) -> T: ...


def state(default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING) -> Any:
    """Declare a dataclass field that is saved in the checkpoint and restored on resume.

    It is not a parameter of the hook.

    Args:
        default: The first value; each hook gets its own copy of a list, dict or set.
        default_factory: Makes the first value, in place of `default`.
    """
    if isinstance(default, (list, dict, set)):
        template = default
        default = dataclasses.MISSING
        default_factory = lambda: copy.deepcopy(template)  # noqa: E731
    return dataclasses.field(
        default=default,
        default_factory=default_factory,
        init=False,
        repr=False,
        metadata={"state": True},
    )


def collect_fields(owner: Any) -> dict[str, Any]:
    """Return the values of an object's `state(...)` fields."""
    return {name: getattr(owner, name) for name in _names(owner)}


def restore_fields(owner: Any, values: Mapping[str, Any]) -> None:
    """Set the `state(...)` fields that `values` has."""
    if not isinstance(values, Mapping):
        raise TypeError(f"the state is a {type(values).__name__}, not a mapping")
    for name in _names(owner):
        if name in values:
            # Copy: the hook may change the value, but the checkpoint must not change.
            setattr(owner, name, copy.deepcopy(values[name]))


def annotate_defaults(cls: type, base: type, names: Iterable[str]) -> None:
    """Let a dataclass use a class attribute such as `priority = "LOW"` as the default of a field.

    `@dataclass` only looks at annotated attributes, so the base's annotation is added.
    """
    own = inspect.get_annotations(cls)
    for name in names:
        if name in vars(cls) and name not in own:
            if dataclasses.KW_ONLY not in own.values():
                own["_"] = dataclasses.KW_ONLY
            own[name] = base.__annotations__[name]
    cls.__annotations__ = own


def _names(owner: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(owner) if field.metadata.get("state")]
