"""`Registry` and `build_from_cfg` of OpenMMLab, with errors that suggest the nearest name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookline.errors import suggest
from hookline.signature import check_arguments


class Registry:
    """Classes and functions by name.

    Args:
        name: The name of the registry, for error messages.
        build_func: Builds an instance from a config; that of the parent by default.
        parent: The registry to look in for names that this one lacks.
        scope: Accepted and ignored.
        home: A module to import before the first look-up, because it registers its classes.
        advice: What to do about a name that is not registered, for the error.
    """

    def __init__(
        self,
        name: str,
        build_func: Callable[..., Any] | None = None,
        parent: Registry | None = None,
        scope: Any = None,
        home: str | None = None,
        advice: str = "",
    ) -> None:
        self.name = name
        self.advice = advice
        self._parent = parent
        self._home = home
        self._module_dict: dict[str, Any] = {}
        inherited: Callable[..., Any] = build_from_cfg if parent is None else parent.build_func
        self.build_func: Callable[..., Any] = build_func or inherited

    @property
    def module_dict(self) -> dict[str, Any]:
        self._import_home()
        return self._module_dict

    def get(self, key: str) -> Any:
        """Return the class with a name (also `scope.Name`), here or in the parent, or None."""
        known = self.module_dict
        found = known.get(key) or known.get(key.rpartition(".")[2])
        if found is None and self._parent is not None:
            return self._parent.get(key)
        return found

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Build an instance from a config `{'type': 'Name', …}`."""
        return self.build_func(*args, **kwargs, registry=self)

    def register_module(
        self, name: str | Sequence[str] | None = None, force: bool = False, module: Any = None
    ) -> Any:
        """Register a class: as a decorator, `@HOOKS.register_module()`, or with `module=`.

        A cell or module that is executed again may register its classes again.
        """
        if callable(name):  # a decorator without parentheses
            return self.register_module()(name)

        def register(cls: Any) -> Any:
            keys: Sequence[str]
            if name is None:
                keys = [cls.__name__]
            elif isinstance(name, str):
                keys = [name]
            else:
                keys = name
            for key in keys:
                known = self._module_dict.get(key)
                if known is not None and not force and not _is_repeated(known, cls):
                    raise KeyError(
                        f"{key} is already registered in {self.name}; force=True replaces it"
                    )
                self._module_dict[key] = cls
            return cls

        return register if module is None else register(module)

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._module_dict)

    def __repr__(self) -> str:
        return f"Registry(name={self.name}, items={sorted(self._module_dict)})"

    def _import_home(self) -> None:
        home = self._home
        self._home = None
        if home is not None:
            importlib.import_module(home)


def _is_repeated(known: Any, cls: Any) -> bool:
    """Return whether a class comes from another execution of the code of a known one."""
    is_same_code = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
    return known is not cls and is_same_code


def build_from_cfg(
    cfg: Mapping[str, Any], registry: Registry, default_args: Mapping[str, Any] | None = None
) -> Any:
    """Build an instance from `{'type': …}`, where the type is a registered name or a class."""
    if not isinstance(cfg, Mapping):
        raise TypeError(f"cfg must be a dict, but got {type(cfg)}")
    args = {**(default_args or {}), **cfg}
    if "type" not in args:
        raise KeyError(f'`cfg` or `default_args` must contain the key "type", but got {dict(cfg)}')
    kind = args.pop("type")
    cls = registry.get(kind) if isinstance(kind, str) else kind
    if cls is None:
        hint = str(suggest(kind, registry.module_dict))
        if registry.advice:
            hint += f"; {registry.advice}"
        raise KeyError(f"{kind} is not in the {registry.name} registry{hint}")
    if not callable(cls):
        raise TypeError(f"type must be a str or a class, but got {type(kind)}")
    problems = check_arguments(cls, args)
    if problems:
        raise TypeError("; ".join(str(problem) for problem in problems))
    return cls(**args)
