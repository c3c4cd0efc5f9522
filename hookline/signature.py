"""What a class can be configured with, read from its constructor."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.errors import Problem, suggest


class Parameters(typing.NamedTuple):
    """The constructor parameters of a class."""

    known: dict[str, inspect.Parameter]
    open_ended: bool  # takes **kwargs
    hints: dict[str, Any]

    def required(self) -> list[str]:
        return [name for name, p in self.known.items() if p.default is p.empty]


def parameters(cls: Callable[..., Any]) -> Parameters:
    """The named parameters of a constructor or function, without `self`."""
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):  # some C types tell nothing
        return Parameters({}, True, {})
    known, open_ended = {}, False
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            known[name] = parameter
    return Parameters(known, open_ended, _hints(cls))


def check_arguments(
    cls: Callable[..., Any], given: Mapping[str, Any], provided: frozenset[str] = frozenset(), common: Iterable[str] = ()
) -> list[Problem]:
    """What is wrong with calling `cls(**given)`.

    `provided` are the arguments that come from elsewhere; `common` are further names that may be given, to be suggested.
    """
    known, open_ended, hints = params = parameters(cls)
    label = getattr(cls, "__name__", str(cls))
    problems = []
    for name, value in given.items():
        if name not in known:
            if not open_ended:
                options = (set(known) - provided) | set(common)
                text = f"{label}: unknown parameter {name!r}{suggest(name, options)}"
                problems.append(Problem(text if options else f"{label} takes no parameters, got {name!r}", (name,)))
        elif name in hints and not fits(value, hints[name]):
            problems.append(Problem(f"{label}: {name!r} must be {describe(hints[name])}, got {value!r}", (name,)))
    missing = [name for name in params.required() if name not in given and name not in provided]
    if missing:
        problems.append(Problem(f"{label}: missing {', '.join(repr(name) for name in missing)}"))
    return problems


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from a config can stand for a type hint; unknown hints accept everything."""
    if hint is Any or hint is inspect.Parameter.empty or isinstance(hint, (str, typing.TypeVar)):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is typing.Literal:
        return any(value == arg and type(value) is type(arg) for arg in args)
    if origin is typing.Annotated:
        return fits(value, args[0])
    if origin in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        if not isinstance(value, (list, tuple)):
            return False
        if origin is tuple and args and args[-1] is not Ellipsis:
            return len(value) == len(args) and all(fits(v, a) for v, a in zip(value, args, strict=True))
        return not args or all(fits(item, args[0]) for item in value)
    if origin in (dict, collections.abc.Mapping):
        return isinstance(value, Mapping) and (len(args) < 2 or all(fits(item, args[1]) for item in value.values()))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is tuple:
        return isinstance(value, (list, tuple))
    if isinstance(hint, type) and issubclass(hint, os.PathLike):
        return isinstance(value, (str, os.PathLike))
    if hint in (str, bool, list, dict):
        return isinstance(value, hint)
    return True  # classes of other libraries: their own constructors know better


def describe(hint: Any) -> str:
    """A type hint in a user's words."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe(arg) for arg in args)
    if origin is typing.Literal:
        return "one of " + ", ".join(repr(arg) for arg in args)
    if hint is type(None) or hint is None:
        return "null"
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false", list: "a list", dict: "a mapping"}
    if hint in names:
        return names[hint]
    if origin is not None:
        inner = ", ".join(describe(arg) for arg in args if arg is not Ellipsis)
        return f"{names.get(origin, getattr(origin, '__name__', str(origin)))} of {inner}" if inner else str(origin)
    return getattr(hint, "__name__", str(hint))


def _hints(cls: Callable[..., Any]) -> dict[str, Any]:
    target: Any = vars(cls).get("__init__", getattr(cls, "__init__", None)) if isinstance(cls, type) else cls
    try:
        return typing.get_type_hints(target)
    except Exception:  # a hint that names something absent at run time tells us nothing; all values pass then
        if dataclasses.is_dataclass(cls):
            return _field_hints(cls)
        return {name: hint for name, hint in getattr(target, "__annotations__", {}).items() if not isinstance(hint, str)}


def _field_hints(cls: Any) -> dict[str, Any]:
    """The hints of a dataclass whose fields come from several modules: each is read where it was written."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = vars(sys.modules[base.__module__])
        for name, hint in vars(base).get("__annotations__", {}).items():
            if name in cls.__dataclass_fields__:
                try:
                    hints.update(typing.get_type_hints(types.SimpleNamespace(__annotations__={name: hint}), names))
                except Exception:  # as above
                    hints.pop(name, None)
    return hints
