"""`mmengine.registry`: classes and functions by name, with parents, children and scopes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.utils.manager import ManagerMixin
from hookline.compat.mmengine.utils.modules import (
    get_object_from_string,
    import_modules_from_strings,
)
from hookline.errors import suggest


class DefaultScope(ManagerMixin):
    """The scope, such as `mmdet`, in which names are looked up first."""

    def __init__(self, name: str, scope_name: str) -> None:
        super().__init__(name)
        self._scope_name = scope_name

    @property
    def scope_name(self) -> str:
        return self._scope_name

    @classmethod
    def get_current_instance(cls) -> DefaultScope | None:
        return super().get_current_instance() if cls._instance_dict else None

    @classmethod
    @contextmanager
    def overwrite_default_scope(cls, scope_name: str | None) -> Generator[None, None, None]:
        if scope_name is None:
            yield
            return
        name = f"overwrite-{len(cls._instance_dict)}"
        cls.get_instance(name, scope_name=scope_name)
        try:
            yield
        finally:
            cls._instance_dict.pop(name)


class Registry:
    """Classes and functions by name.

    Args:
        name: The name of the registry, for error messages.
        build_func: Builds an instance from a config; that of the parent by default.
        parent: The registry to look in for names that this one lacks.
        scope: The name of this registry among the children of its parent; the top-level package
            of the calling module by default, as in MMEngine.
        locations: Modules to import before the first lookup, because they register their classes.
    """

    def __init__(
        self,
        name: str,
        build_func: Callable[..., Any] | None = None,
        parent: Registry | None = None,
        scope: str | None = None,
        locations: list[str] | tuple[str, ...] = (),
    ) -> None:
        self._name = name
        self._module_dict: dict[str, Any] = {}
        self._children: dict[str, Registry] = {}
        self._scope = scope or _scope_of_caller()
        self._locations = list(locations)
        self._imported = False
        self.parent = parent
        if parent is not None:
            parent._children[self._scope] = self
        inherited: Callable[..., Any] = build_from_cfg if parent is None else parent.build_func
        self.build_func: Callable[..., Any] = build_func or inherited

    name = property(lambda self: self._name)
    scope = property(lambda self: self._scope)
    module_dict = property(lambda self: self._module_dict)
    children = property(lambda self: self._children)
    root = property(lambda self: self if self.parent is None else self.parent.root)

    def __len__(self) -> int:
        return len(self._module_dict)

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __repr__(self) -> str:
        return f"Registry of {self._name}: {', '.join(sorted(self._module_dict))}"

    def register_module(
        self, name: str | list[str] | None = None, force: bool = False, module: Any = None
    ) -> Any:
        """Register a class or function: as a decorator, or with `module=`.

        A module that is executed again may register its classes again.
        """
        if module is None:
            return lambda module: self.register_module(name, force, module)
        names = name
        if name is None:
            names = [module.__name__]
        elif isinstance(name, str):
            names = [name]
        for key in names or ():
            known = self._module_dict.get(key)
            if known is not None and not force and not _is_same_definition(known, module):
                raise KeyError(f"{key} is already registered in {self._name} at {known.__module__}")
            self._module_dict[key] = module
        return module

    def import_from_location(self) -> None:
        """Import the modules that register their classes here."""
        if not self._imported:
            self._imported = True
            import_modules_from_strings(self._locations)

    def get(self, key: str) -> Any:
        """Return the object with a name, a scope and a name, or a dotted path; None if absent."""
        if not isinstance(key, str):
            raise TypeError(f"The key argument of `Registry.get` must be a str, got {type(key)}")
        scope, _, real_key = key.partition(".")
        if real_key and scope == self._scope:
            return self.get(real_key)
        if real_key and scope in self._children:
            return self._children[scope].get(real_key)
        self.import_from_location()
        if key in self._module_dict:
            return self._module_dict[key]
        if self.parent is not None:
            return self.parent.get(key)
        return get_object_from_string(key) if "." in key else None

    def build(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        return self.build_func(cfg, *args, **kwargs, registry=self)

    @contextmanager
    def switch_scope_and_registry(self, scope: str | None) -> Generator[Registry, None, None]:
        """Yield the registry of a scope, or of the default scope; this one if there is none."""
        with DefaultScope.overwrite_default_scope(scope):
            default = DefaultScope.get_current_instance()
            if default is None or default.scope_name == self._scope:
                yield self
            else:
                yield self.root._children.get(default.scope_name, self)

    def names(self) -> list[str]:
        """Return the names of everything that can be built here."""
        self.import_from_location()
        names = set(self._module_dict)
        if self.parent is not None:
            names.update(self.parent.names())
        return sorted(names)


def _is_same_definition(one: Any, other: Any) -> bool:
    same_module = one.__module__ == other.__module__
    return bool(same_module and one.__qualname__ == other.__qualname__)


def build_from_cfg(cfg: Any, registry: Registry, default_args: Any = None) -> Any:
    """Build an instance of `cfg['type']` with the other entries of `cfg`.

    Args:
        cfg: The config.
        registry: The registry of the type.
        default_args: Entries that `cfg` may lack.
    """
    if not hasattr(cfg, "keys"):
        raise TypeError(f"cfg should be a dict, ConfigDict or Config, but got {type(cfg)}")
    args = {**(default_args or {}), **dict(cfg.items())}
    if "type" not in args:
        raise KeyError(
            f'`cfg` or `default_args` must contain the key "type", but got {cfg}\n{default_args}'
        )
    kind = args.pop("type")
    with registry.switch_scope_and_registry(args.pop("_scope_", None)) as current:
        if isinstance(kind, str):
            found = current.get(kind)
            if found is None:
                full_name = f"{current.scope}::{current.name}"
                hint = suggest(kind, current.names())
                raise KeyError(f"{kind} is not in the {full_name} registry{hint}")
        elif callable(kind):
            found = kind
        else:
            raise TypeError(f"type must be a str or valid type, but got {type(kind)}")
        if inspect.isclass(found) and issubclass(found, ManagerMixin):
            return found.get_instance(**args)
        return found(**args)


def build_model_from_cfg(cfg: Any, registry: Registry, default_args: Any = None) -> Any:
    """Build a model; a list of configs becomes a `Sequential`."""
    if isinstance(cfg, list):
        from hookline.compat.mmengine.model import Sequential

        modules = [build_from_cfg(part, registry, default_args) for part in cfg]
        return Sequential(*modules)
    return build_from_cfg(cfg, registry, default_args)


def build_runner_from_cfg(cfg: Any, registry: Registry) -> Any:
    """Build a runner of `runner_type` with its `from_cfg`."""
    kind = cfg.get("runner_type", "Runner")
    found = registry.get(kind) if isinstance(kind, str) else kind
    if found is None:
        raise KeyError(
            f"{kind} is not in the {registry.name} registry{suggest(kind, registry.names())}"
        )
    return found.from_cfg(cfg)


def build_scheduler_from_cfg(cfg: Any, registry: Registry, default_args: Any = None) -> Any:
    """Build a parameter scheduler.

    With `convert_to_iter_based` in the config, a schedule in epochs becomes one in iterations.
    """
    args = {**(default_args or {}), **dict(cfg.items())}
    epoch_length = args.pop("epoch_length", None)
    if not args.pop("convert_to_iter_based", False):
        return build_from_cfg(args, registry)
    kind = args.pop("type")
    found = registry.get(kind) if isinstance(kind, str) else kind
    return found.build_iter_from_epoch(epoch_length=epoch_length, **args)


def init_default_scope(scope: str) -> None:
    """Make a scope the default one, in which names are looked up first."""
    DefaultScope.get_instance(f"{scope}-{len(DefaultScope._instance_dict)}", scope_name=scope)


def _scope_of_caller() -> str:
    """Return the top-level package of the module that makes a registry.

    MMEngine documents this default of `scope`, and packages built on it rely on it.
    """
    frame: Any = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    if frame is None:
        return "mmengine"
    module: str = frame.f_globals.get("__name__", "mmengine")
    return module.split(".")[0]


def _root(name: str, *locations: str, build_func: Callable[..., Any] | None = None) -> Registry:
    modules = [f"hookline.compat.mmengine.{location}" for location in locations]
    return Registry(name, build_func=build_func, scope="mmengine", locations=modules)


RUNNERS = _root("runner", "runner", build_func=build_runner_from_cfg)
RUNNER_CONSTRUCTORS = _root("runner constructor")
LOOPS = _root("loop", "runner")
HOOKS = _root("hook", "hooks")
STRATEGIES = _root("strategy")
DATASETS = _root("dataset", "dataset")
DATA_SAMPLERS = _root("data sampler", "dataset")
TRANSFORMS = _root("transform")
MODELS = _root("model", "model", build_func=build_model_from_cfg)
MODEL_WRAPPERS = _root("model_wrapper", "model")
WEIGHT_INITIALIZERS = _root("weight initializer", "model")
OPTIMIZERS = _root("optimizer", "optim")
OPTIM_WRAPPERS = _root("optim_wrapper", "optim")
OPTIM_WRAPPER_CONSTRUCTORS = _root("optimizer wrapper constructor", "optim")
PARAM_SCHEDULERS = _root("parameter scheduler", "optim", build_func=build_scheduler_from_cfg)
METRICS = _root("metric", "evaluator")
EVALUATOR = _root("evaluator", "evaluator")
TASK_UTILS = _root("task util")
VISUALIZERS = _root("visualizer", "visualization")
VISBACKENDS = _root("vis_backend", "visualization")
LOG_PROCESSORS = _root("log_processor", "runner")
INFERENCERS = _root("inferencer")
FUNCTIONS = _root("function", "dataset")

__getattr__ = not_covered(
    __name__,
    [name for name in globals() if name[0].isupper() or name.startswith(("build_", "init_"))],
)
