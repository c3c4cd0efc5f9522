"""The registry of hooks, which also builds callbacks of other frameworks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from hookline.adapters import adapt, find_adapter, load_adapter
from hookline.errors import ConfigError, Problem
from hookline.priority import get_priority
from hookline.registry import Registry
from hookline.signature import Parameters, fits, parameters

T = TypeVar("T")


class HookRegistry(Registry[T]):
    """The registry of hooks. Each hook also takes `name`, `priority` and `frequency`."""

    COMMON: ClassVar[Mapping[str, type]] = {"name": str, "priority": object, "frequency": int}

    def check(
        self, config: Mapping[str, Any], provided: frozenset[str] = frozenset()
    ) -> list[Problem]:
        """Return the problems of a hook's config, without building the hook."""
        common = {key: config[key] for key in self.COMMON if key in config}
        return super().check(config, provided) + check_common(str(config.get("type")), common)

    def arguments(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor; `build` sets other common ones afterwards."""
        own = self.own_parameters(self.get(config["type"])).known
        return {
            str(key): value
            for key, value in config.items()
            if key != "type" and (key in own or key not in self.COMMON)
        }

    def build(self, config: Mapping[str, Any] | T | str, **extra: Any) -> T:
        """Build a hook; a callback of another framework, or its dotted path, is wrapped."""
        hook: T = adapt(super().build(config, **extra))
        if not isinstance(hook, self.kind):
            raise hook_type_error(hook)
        if isinstance(config, Mapping):
            for key in self.COMMON:
                if config.get(key) is not None:  # `name: null` is the default name
                    setattr(hook, key, config[key])
        return hook

    def own_parameters(self, cls: type[T]) -> Parameters:
        """Return the parameters of a hook without those that every hook takes."""
        target = self.signature_of(cls)
        signature = parameters(target)
        if target is not cls:
            return signature  # `from_config` declares everything that it takes
        fields = getattr(cls, "__dataclass_fields__", {})
        own = {
            name: parameter
            for name, parameter in signature.known.items()
            # A hook may declare one of them itself.
            if name not in self.COMMON or name not in fields or not fields[name].kw_only
        }
        return signature._replace(known=own)

    def signature_of(self, cls: type[T]) -> Callable[..., Any]:
        """Return the callable that a config has the parameters of: `from_config` or the class."""
        return getattr(cls, "from_config", cls) if issubclass(cls, self.kind) else cls

    def construct(self, cls: type[T], arguments: dict[str, Any]) -> T:
        """Construct a hook from checked arguments."""
        hook: T = self.signature_of(cls)(**arguments)
        return hook

    def _import(self, path: str) -> type[T]:
        load_adapter(path)
        return super()._import(path)

    def _checked(self, target: Any, path: str) -> type[T]:
        is_class = isinstance(target, type)
        if is_class and not issubclass(target, self.kind) and find_adapter(target) is not None:
            return target  # type: ignore[no-any-return]  # a callback, wrapped after it is built
        return super()._checked(target, path)


def check_common(component: str, given: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of the name, priority and frequency of a hook."""
    problems = []
    if "priority" in given:
        try:
            get_priority(given["priority"])
        except (TypeError, ValueError) as error:
            problem = error.problems[0] if isinstance(error, ConfigError) else Problem(str(error))
            about = {"path": ("priority",), "component": component, "parameter": "priority"}
            problems.append(dataclasses.replace(problem, **about))  # type: ignore[arg-type]
    wanted = {"name": "text", "frequency": "a whole number of at least 1"}
    for key, expected in wanted.items():
        if key not in given or (key == "name" and given[key] is None):
            continue
        value = given[key]
        if not fits(value, HookRegistry.COMMON[key]) or (key == "frequency" and value < 1):
            message = f"{key!r} must be {expected}"
            problems.append(
                Problem(message, (key,), component=component, parameter=key, value=value)
            )
    return problems


def hook_type_error(given: object) -> TypeError:
    """Return the error for an object that is not a hook."""
    if not isinstance(given, type):
        return TypeError(f"a hook is a BaseHook or a config with a 'type', got {given!r}")
    arguments = ", ".join(f"{name}=…" for name in parameters(given).required())
    return TypeError(f"{given.__name__} is a class; pass an object: {given.__name__}({arguments})")
