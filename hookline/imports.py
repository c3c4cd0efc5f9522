"""Import the modules, classes and functions that a config names."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from hookline.errors import ConfigError, Suggestion, format_exception, suggest

# A training config does not need these modules, but an attacker would use them.
FORBIDDEN_MODULES = frozenset(
    [
        "os",
        "posix",
        "nt",
        "subprocess",
        "sys",
        "builtins",
        "shutil",
        "importlib",
        "runpy",
        "ctypes",
        "pickle",
        "socket",
        "pty",
    ]
)


def import_module(name: str) -> ModuleType:
    """Import a module that a config names.

    Raises:
        ConfigError: If there is no such module, with a suggestion, or if its code fails, with the
            line that failed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if _is_missing(name, error):
            suggestion = suggest_module(name)
            message = f"there is no module {name!r}"
            raise ConfigError(message, suggestion=suggestion) from error
        raise _import_error(name, error) from error
    except Exception as error:  # The module's code may raise anything.
        raise _import_error(name, error) from error


def import_by_path(path: str, kind: str, is_candidate: Callable[[Any], bool]) -> Any:
    """Import the object that a dotted path names.

    Args:
        path: `package.module.name`.
        kind: The kind of object for error messages, such as `hook`.
        is_candidate: Selects the objects of the module that an error message may suggest.

    Raises:
        ConfigError: If there is no such module or object, with a suggestion, or if the module's
            code fails, with the line that failed.
    """
    module_name, _, name = path.rpartition(".")
    _check_module(module_name, path)
    try:
        module = importlib.import_module(module_name)
        is_found = hasattr(module, name)
    except ModuleNotFoundError as error:
        if _is_missing(module_name, error):
            suggestion = suggest_module(module_name, name)
            message = f"unknown {kind} {path!r}: there is no module {module_name!r}"
            raise ConfigError(message, suggestion=suggestion) from error
        raise _import_error(path, error) from error
    except Exception as error:  # The module's code may raise anything.
        raise _import_error(path, error) from error
    if is_found:
        return _checked(getattr(module, name), path)
    candidates = [key for key, value in vars(module).items() if is_candidate(value)]
    file = getattr(module, "__file__", None)
    where = f"module {module_name!r} ({file})" if file else f"module {module_name!r}"
    suggestion = _suggest_attribute(module_name, name, file, candidates)
    raise ConfigError(f"{where} has no {name!r}", suggestion=suggestion)


def _checked(found: Any, path: str) -> Any:
    """Return an object; raise ConfigError if a module imports it from a forbidden one."""
    home = getattr(found, "__module__", None)
    if isinstance(home, str):
        _check_module(home, path)
    return found


def _check_module(name: str, path: str) -> None:
    if name.partition(".")[0] in FORBIDDEN_MODULES:
        raise ConfigError(f"{path!r}: module {name!r} may not be used from a config")


def suggest_module(module_name: str, attribute: str = "") -> Suggestion:
    """Suggest the module in the working directory whose name is nearest to a missing one."""
    first, dot, rest = module_name.partition(".")
    local = [found.name for found in pkgutil.iter_modules([str(Path.cwd())]) if found.name != first]
    near = difflib.get_close_matches(first, local, n=1, cutoff=0.6)
    if not near:
        return Suggestion()
    path = near[0] + dot + rest
    return Suggestion(f"{path}.{attribute}" if attribute else path)


def _suggest_attribute(
    module_name: str, name: str, file: str | None, candidates: list[str]
) -> Suggestion:
    local = Path(f"{module_name.replace('.', '/')}.py")
    if file and local.is_file() and not local.samefile(file):
        return Suggestion(advice=f"it shadows your {local}: rename that file")
    suggestion = suggest(name, candidates)
    if suggestion.nearest is None:
        return suggest_module(module_name, name) or suggestion
    return suggestion


def _is_missing(module_name: str, error: ModuleNotFoundError) -> bool:
    """Return whether the module itself, or a package around it, does not exist."""
    missing = error.name
    return bool(missing) and f"{module_name}.".startswith(f"{missing}.")


def _import_error(name: str, error: Exception) -> ConfigError:
    return ConfigError(f"cannot import {name!r}: {format_exception(error)}")
