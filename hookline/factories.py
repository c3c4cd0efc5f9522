"""Decide which functions and class methods a config may call to build an object."""

from __future__ import annotations

import inspect
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hookline.errors import KeyPath, Problem, Suggestion

# Class methods that build an object by convention, although they often declare no return type.
BUILDING_METHODS = ("from_pretrained", "from_config")
TRUST_VARIABLE = "HOOKLINE_TRUST_REMOTE_CODE"
# Arguments with which a library executes code from a model's files, and their harmless value.
# None is harmless, too: it is the default.
CODE_ARGUMENTS: dict[str, bool | None] = {
    "allow_all_kernels": False,
    "allow_pickle": False,
    "custom_generate": None,
    "custom_pipeline": None,
    "import_allowlist": None,
    "kernel_config": None,
    "load_weights_only": True,
    "trust_remote_code": False,
    "weights_only": True,
}

SELF = getattr(typing, "Self", object())  # from Python 3.11

Kind = type | tuple[type, ...]


def is_factory(target: Any, kind: Kind) -> bool:
    """Return whether a function or class method is declared to build objects of a kind.

    One of these must hold, and nothing is called to find it out:

    - it is a function or class method that is annotated to return the kind;
    - it is a class method that is called `from_pretrained` or `from_config`.

    A lambda, a private function and a function that is not written in Python are none.
    """
    owner: Any = None
    function = target
    if inspect.ismethod(target):
        owner, function = target.__self__, target.__func__
        if not isinstance(owner, type):
            return False
    if not inspect.isfunction(function) or not _is_public(function.__name__):
        return False
    if owner is not None and function.__name__ in BUILDING_METHODS:
        return True
    return _returns(function, owner, kind)


def _is_public(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_")


def _returns(function: types.FunctionType, owner: type | None, kind: Kind) -> bool:
    """Return whether a function is annotated to return objects of a kind, and nothing else."""
    if "return" not in function.__annotations__:
        return False
    only_return = types.SimpleNamespace(
        __annotations__={"return": function.__annotations__["return"]}
    )
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        hint = typing.get_type_hints(only_return, names)["return"]
    except Exception:  # An annotation may name anything, also what exists for type checkers only.
        return False
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = typing.get_args(hint) if is_union else (hint,)
    classes = [owner if each is SELF else each for each in options]
    return all(_is_of(typing.get_origin(each) or each, kind) for each in classes)


def _is_of(cls: Any, kind: Kind) -> bool:
    return isinstance(cls, type) and issubclass(cls, kind)


def name_of(target: Callable[..., Any]) -> str:
    """Return the name of a class or factory for messages: `AutoModel.from_pretrained`."""
    if inspect.ismethod(target) and isinstance(target.__self__, type):
        return f"{target.__self__.__name__}.{target.__name__}"
    return getattr(target, "__name__", str(target))


def code_problems(arguments: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each argument that would execute code from a model's files."""
    if os.environ.get(TRUST_VARIABLE) == "1":
        return []
    return [
        Problem(
            f"{path[-1]!r} executes code from the files of a model",
            path,
            parameter=str(path[-1]),
            value=value,
            suggestion=Suggestion(
                advice=f"if you trust them, set {TRUST_VARIABLE}=1 and try again"
            ),
        )
        for path, value in _code_arguments(arguments, ())
    ]


def _code_arguments(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    items: Any = ()
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    for key, item in items:
        is_known = isinstance(key, str) and key in CODE_ARGUMENTS
        if is_known and item is not None and item is not CODE_ARGUMENTS[key]:
            yield (*path, key), item
        yield from _code_arguments(item, (*path, key))
