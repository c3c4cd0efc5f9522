"""Check the arguments of a constructor or function against its signature."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.errors import KeyPath, Problem, Suggestion, suggest
from hookline.foreign_names import suggest_parameter

# Errors of type hints whose names do not exist at run time.
UNRESOLVED_HINT = (NameError, AttributeError, TypeError, SyntaxError, ImportError)

TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


class Parameters(typing.NamedTuple):
    """The named parameters of a constructor or function, without `self`."""

    known: dict[str, inspect.Parameter]
    open_ended: bool  # takes **kwargs
    hints: dict[str, Any]

    def required(self) -> list[str]:
        return [name for name, p in self.known.items() if p.default is p.empty]


def parameters(cls: Callable[..., Any]) -> Parameters:
    """Return the named parameters of a constructor or function."""
    try:
        signature = _signature(cls)
    except (TypeError, ValueError):  # Some types written in C have no signature.
        return Parameters({}, True, {})
    known = {}
    open_ended = False
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            known[name] = parameter
    return Parameters(known, open_ended, _hints(cls))


def check_arguments(
    cls: Callable[..., Any],
    given: Mapping[str, Any],
    provided: frozenset[str] = frozenset(),
    common: Iterable[str] = (),
) -> list[Problem]:
    """Return the problems of calling `cls(**given)`.

    Args:
        cls: The class or function.
        given: The arguments.
        provided: Names of arguments that the caller adds later.
        common: Names that are accepted in addition to the parameters of `cls`, for suggestions.
    """
    params = parameters(cls)
    component = getattr(cls, "__name__", str(cls))
    problems = []
    for name, value in given.items():
        about: dict[str, Any] = {"component": component, "parameter": name}
        if name in params.known:
            hint = params.hints.get(name, Any)
            if not fits(value, hint):
                problems.append(type_problem(f"{name!r} must be", value, hint, (name,), **about))
        elif not params.open_ended and not _is_kept_property(cls, name):
            options = (set(params.known) - provided) | set(common)
            message = f"unknown parameter {name!r}" if options else f"takes no parameter {name!r}"
            suggestion = suggest_parameter(name, options)
            problems.append(Problem(message, (name,), suggestion=suggestion, **about))
    missing = [name for name in params.required() if name not in given and name not in provided]
    if missing:
        names = ", ".join(repr(name) for name in missing)
        problems.append(Problem(f"missing {names}", component=component, parameter=missing[0]))
    return problems


def check_positional(
    cls: Callable[..., Any], values: list[Any], named: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """Return positional arguments by the names of their parameters, and their problems.

    Args:
        cls: The class or function.
        values: The positional arguments.
        named: The other arguments.
    """
    try:
        signature = list(_signature(cls).parameters.values())
    except (TypeError, ValueError):
        return {}, []
    component = getattr(cls, "__name__", str(cls))
    places = [p for p in signature if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in signature)
    hints = _hints(cls)
    problems = []
    if len(values) > len(places) and not is_open:
        message = f"takes at most {len(places)} positional arguments, but 'args' has {len(values)}"
        problems.append(Problem(message, ("args",), component=component, parameter="args"))
    by_name = {place.name: value for place, value in zip(places, values, strict=False)}
    for index, (name, value) in enumerate(by_name.items()):
        about: dict[str, Any] = {"component": component, "parameter": name}
        if name in named:
            message = f"{name!r} is given by name and in 'args'"
            problems.append(Problem(message, ("args", index), **about))
        elif not fits(value, hints.get(name, Any)):
            path: KeyPath = ("args", index)
            problems.append(type_problem(f"{name!r} must be", value, hints[name], path, **about))
    return by_name, problems


def _signature(cls: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a constructor or function.

    The `from_config` of the Auto classes of transformers is a method around another method. Python
    would leave out the first parameter of both.
    """
    inner = getattr(cls, "__wrapped__", None)
    return inspect.signature(cls, follow_wrapped=not inspect.ismethod(inner))


def _is_kept_property(cls: Callable[..., Any], name: str) -> bool:
    """Return whether a class takes a property that its signature lacks.

    Configs of transformers do: `num_labels`.
    """
    if not isinstance(cls, type) or not isinstance(getattr(cls, name, None), property):
        return False
    outermost = inspect.signature(cls.__init__, follow_wrapped=False)  # type: ignore[misc]
    return any(each.kind is each.VAR_KEYWORD for each in outermost.parameters.values())


class Part:
    """Stands for an object that a config builds, while its parameters are checked."""


def type_problem(label: str, value: Any, hint: Any, path: KeyPath, **about: Any) -> Problem:
    """Return the problem of a value that does not fit its type hint."""
    suggestion = Suggestion()
    if _is_quoted_number(value, hint):
        suggestion = Suggestion(advice="leave out the quotes")
    elif isinstance(value, str) and typing.get_origin(hint) is typing.Literal:
        suggestion = suggest(value, typing.get_args(hint))
    message = f"{label} {describe(hint)}"
    return Problem(message, path, value=value, suggestion=suggestion, **about)


def _is_quoted_number(value: Any, hint: Any) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?", value):
        return False
    return fits(1, hint) or fits(0.5, hint)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value from a config fits a type hint; an unknown hint fits every value."""
    if hint is Any or hint is inspect.Parameter.empty or isinstance(hint, (str, typing.TypeVar)):
        return True
    if isinstance(value, Part):
        return True  # The class that takes it checks it.
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
        return _fits_sequence(value, origin, args)
    if origin in (dict, collections.abc.Mapping):
        return _fits_mapping(value, args)
    return _fits_class(value, hint)


def _fits_sequence(value: Any, origin: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    if origin is tuple and args and args[-1] is not Ellipsis:
        same_length = len(value) == len(args)
        return same_length and all(fits(v, a) for v, a in zip(value, args, strict=True))
    return not args or all(fits(item, args[0]) for item in value)


def _fits_mapping(value: Any, args: tuple[Any, ...]) -> bool:
    if not isinstance(value, Mapping):
        return False
    return len(args) < 2 or all(fits(item, args[1]) for item in value.values())


def _fits_class(value: Any, hint: Any) -> bool:
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is tuple:
        return isinstance(value, (list, tuple))
    # In Python 3.10, dict[str, int] is an instance of type, too.
    is_class = isinstance(hint, type) and typing.get_origin(hint) is None
    if is_class and issubclass(hint, os.PathLike):
        return isinstance(value, (str, os.PathLike))
    if hint in (str, bool, list, dict):
        return isinstance(value, hint)
    return True  # A class of another library checks its arguments itself.


def describe(hint: Any) -> str:
    """Describe a type hint in the words of a config: `a whole number or null`."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(describe(arg) for arg in args)
    if origin is typing.Literal:
        return "one of " + ", ".join(repr(arg) for arg in args)
    if hint is type(None) or hint is None:
        return "null"
    if hint in TYPE_NAMES:
        return TYPE_NAMES[hint]
    if origin is None:
        return getattr(hint, "__name__", str(hint))
    inner = ", ".join(describe(arg) for arg in args if arg is not Ellipsis)
    if not inner:
        return str(origin)
    name = TYPE_NAMES.get(origin) or getattr(origin, "__name__", str(origin))
    return f"{name} of {inner}"


def _hints(cls: Callable[..., Any]) -> dict[str, Any]:
    target: Any = cls
    if isinstance(cls, type):
        target = vars(cls).get("__init__", getattr(cls, "__init__", None))
    try:
        return typing.get_type_hints(target)
    except UNRESOLVED_HINT:
        if dataclasses.is_dataclass(cls):
            return _field_hints(cls)
        hints = getattr(target, "__annotations__", {})
        return {name: hint for name, hint in hints.items() if not isinstance(hint, str)}


def _field_hints(cls: Any) -> dict[str, Any]:
    """Return the hints of a dataclass, each resolved in the module that declares it."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = vars(sys.modules[base.__module__])
        for name, hint in vars(base).get("__annotations__", {}).items():
            if name not in cls.__dataclass_fields__:
                continue
            single = types.SimpleNamespace(__annotations__={name: hint})
            try:
                hints.update(typing.get_type_hints(single, names))
            except UNRESOLVED_HINT:
                hints.pop(name, None)
    return hints
