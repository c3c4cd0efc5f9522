"""`Registry` and `build_from_cfg`, as MMCV has them, with errors that name the nearest thing there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookline.errors import suggest
from hookline.signature import check_arguments


class Registry:
    """Names to classes; `build({'type': 'Name', …})` makes an instance."""

    def __init__(self, name: str, build_func: Callable[..., Any] | None = None, parent: Registry | None = None, scope: Any = None) -> None:
        self._name = name
        self._parent = parent
        self._module_dict: dict[str, Any] = {}
        inherited: Callable[..., Any] = build_from_cfg if parent is None else parent.build_func
        self.build_func: Callable[..., Any] = build_func or inherited

    @property
    def name(self) -> str:
        return self._name

    @property
    def module_dict(self) -> dict[str, Any]:
        return self._module_dict

    def get(self, key: str) -> Any:
        """The class of a name (`scope.Name` too), from the parent if it is not here; None if there is none."""
        found = self._module_dict.get(key) or self._module_dict.get(key.rpartition(".")[2])
        return found if found is not None or self._parent is None else self._parent.get(key)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        return self.build_func(*args, **kwargs, registry=self)

    def register_module(self, name: str | Sequence[str] | None = None, force: bool = False, module: Any = None) -> Any:
        """Decorator `@HOOKS.register_module()`, or a call with `module=`."""
        if callable(name):  # used without parentheses
            return self.register_module()(name)

        def register(cls: Any) -> Any:
            for key in [cls.__name__] if name is None else [name] if isinstance(name, str) else name:
                if key in self._module_dict and not force:
                    raise KeyError(f"{key} is already registered in {self._name}; force=True replaces it")
                self._module_dict[key] = cls
            return cls

        return register if module is None else register(module)

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._module_dict)

    def __repr__(self) -> str:
        return f"Registry(name={self._name}, items={sorted(self._module_dict)})"


def build_from_cfg(cfg: Mapping[str, Any], registry: Registry, default_args: Mapping[str, Any] | None = None) -> Any:
    """An instance from `{'type': …}`, where the type is a registered name or a class."""
    if not isinstance(cfg, Mapping):
        raise TypeError(f"cfg must be a dict, but got {type(cfg)}")
    args = {**(default_args or {}), **cfg}
    if "type" not in args:
        raise KeyError(f'`cfg` or `default_args` must contain the key "type", but got {dict(cfg)}')
    kind = args.pop("type")
    cls = registry.get(kind) if isinstance(kind, str) else kind
    if cls is None:
        raise KeyError(f"{kind} is not in the {registry.name} registry{suggest(kind, registry.module_dict)}")
    if not callable(cls):
        raise TypeError(f"type must be a str or a class, but got {type(kind)}")
    problems = check_arguments(cls, args)
    if problems:
        raise TypeError("; ".join(problem.message for problem in problems))
    return cls(**args)
