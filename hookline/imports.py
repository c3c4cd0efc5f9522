"""Import the modules, classes and functions that a config names."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from hookline.errors import ConfigError, Suggestion, format_exception, suggest

# A training config does not need these modules, but an attacker would use them: all of Python's
# own, and modules of common packages that start programs, build code or read pickles. webdataset
# and wids start programs for URLs such as `pipe:…`.
FORBIDDEN_MODULES = sys.stdlib_module_names | {
    "IPython",
    "_pytest",
    "distutils",
    "pip",
    "pkg_resources",
    "pytest",
    "setuptools",
    "torch.distributed.elastic",
    "torch.distributed.launch",
    "torch.distributed.launcher",
    "torch.distributed.run",
    "torch.fx",
    "torch.hub",
    "torch.jit",
    "torch.package",
    "torch.serialization",
    "torch.utils.cpp_extension",
    "torch.utils.data.datapipes",
    "webdataset",
    "wids",
}

# The libraries whose functions a config may call: to build models, and to collate or measure.
# Functions of other installed packages may do anything: psutil.Popen starts a program, and
# sympy.sympify evaluates text.
BUILDING_LIBRARIES = (
    "diffusers",
    "hookline.data",
    "hookline.models",
    "huggingface_hub.hub_mixin",
    "monai.networks",
    "open_clip",
    "peft",
    "segmentation_models_pytorch",
    "sentence_transformers",
    "timm",
    "torch.nn",
    "torch_geometric.nn",
    "torchaudio",
    "torchvision",
    "transformers",
)
CALLED_LIBRARIES = (
    "hookline.data",
    "hookline.metrics",
    "sklearn.metrics",
    "torch.nn.functional",
    "torch.utils.data",
    "torchmetrics.functional",
    "transformers.data",
)
INSTALLED = {"site-packages", "dist-packages"}  # directories of installed packages

# Packages that an extra installs, for suggestions.
EXTRAS = {"transformers": "finetune", "peft": "finetune", "datasets": "finetune"}


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
        path: `package.module.name`, or `package.module.Class.name` for a method of a class.
        kind: The kind of object for error messages, such as `hook`.
        is_candidate: Selects the objects of the module that an error message may suggest.

    Raises:
        ConfigError: If there is no such module or object, with a suggestion, or if the module's
            code fails, with the line that failed.
    """
    module_name, _, name = path.rpartition(".")
    _check_module(module_name, path)
    try:
        module, names = _import_around(path)
        found, missing = _look_up(module, names)
    except ModuleNotFoundError as error:
        if _is_missing(module_name, error):
            suggestion = suggest_module(module_name, name)
            message = f"unknown {kind} {path!r}: there is no module {module_name!r}"
            raise ConfigError(message, suggestion=suggestion) from error
        raise _import_error(path, error) from error
    except Exception as error:  # The module's code may raise anything.
        raise _import_error(path, error) from error
    if missing is None:
        return _checked(found, names, path)
    candidates = [key for key, value in vars(found).items() if is_candidate(value)]
    if isinstance(found, type):
        raise ConfigError(f"{path!r}: {found.__name__} has no {missing!r}")
    file = getattr(found, "__file__", None)
    where = f"module {module.__name__!r} ({file})" if file else f"module {module.__name__!r}"
    suggestion = _suggest_attribute(module.__name__, missing, file, candidates)
    raise ConfigError(f"{where} has no {missing!r}", suggestion=suggestion)


def check_origin(found: Any, path: str, libraries: Iterable[str]) -> None:
    """Raise ConfigError if a function comes from an installed package outside some libraries.

    The code of the user is not installed: it is in the working directory or in a project that is
    installed as editable.
    """
    for home in _homes(found) or [path.rpartition(".")[0]]:
        if _is_installed(home) and not any(f"{home}.".startswith(f"{each}.") for each in libraries):
            package = home.partition(".")[0]
            message = f"{path!r}: a config may not call this function of the package {package!r}"
            advice = Suggestion(advice="call it in a function that you write, and name that one")
            raise ConfigError(message, suggestion=advice)


def _is_installed(name: str) -> bool:
    """Return whether a module belongs to an installed package, or to Hookline itself."""
    if name.partition(".")[0] == __package__:
        return True
    while name:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            return not INSTALLED.isdisjoint(Path(file).parts)
        name = name.rpartition(".")[0]
    return False


def _import_around(path: str) -> tuple[ModuleType, list[str]]:
    """Import the module of `module.name` or `module.Class.name`; return it and the names in it.

    Only a class may stand between the module and the last name, so that a path cannot lead
    through the modules that a module imports.
    """
    module_name, _, name = path.rpartition(".")
    try:
        return importlib.import_module(module_name), [name]
    except ModuleNotFoundError as error:
        outer, _, middle = module_name.rpartition(".")
        if error.name != module_name or not outer:
            raise
        module = importlib.import_module(outer)
        if not isinstance(getattr(module, middle, None), type):
            raise
        return module, [middle, name]


def _look_up(module: ModuleType, names: list[str]) -> tuple[Any, str | None]:
    """Return the object that names lead to, or the last one found and the name that it lacks."""
    found: Any = module
    for name in names:
        if not hasattr(found, name):
            return found, name
        found = getattr(found, name)
    return found, None


def _checked(found: Any, names: list[str], path: str) -> Any:
    """Return an object; raise ConfigError if it is private or comes from a forbidden module."""
    if len(names) > 1 and any(name.startswith("_") for name in names):
        raise ConfigError(f"{path!r} is private and may not be used from a config")
    for home in _homes(found):
        _check_module(home, path)
    return found


def _homes(found: Any) -> list[str]:
    """Return the modules that an object and the function inside it come from."""
    while isinstance(found, functools.partial):
        found = found.func
    function = found.__func__ if inspect.ismethod(found) else found
    if inspect.isfunction(function):
        function = inspect.unwrap(function)
    homes = [getattr(each, "__module__", None) for each in (found, function)]
    homes.append(getattr(function, "__globals__", {}).get("__name__"))
    return [home for home in homes if isinstance(home, str)]


def _check_module(name: str, path: str) -> None:
    parts = name.split(".")
    around = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    if around.isdisjoint(FORBIDDEN_MODULES):
        return
    message = f"{path!r}: module {name!r} may not be used from a config"
    suggestion = suggest_module(name, path.rpartition(".")[2])
    if Path(f"{parts[0]}.py").is_file():
        suggestion = Suggestion(advice=f"it shadows your {parts[0]}.py: rename that file")
    raise ConfigError(message, suggestion=suggestion)


def suggest_module(module_name: str, attribute: str = "") -> Suggestion:
    """Suggest the extra with a missing module, or the nearest name in the working directory."""
    first, dot, rest = module_name.partition(".")
    if first in EXTRAS:
        return Suggestion(advice=f"pip install 'hookline[{EXTRAS[first]}]'")
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
