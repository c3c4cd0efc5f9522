"""`mmengine.registry`: names to classes and functions, with parents, children and scopes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.utils.manager import ManagerMixin
from hookline.compat.mmengine.utils.modules import get_object_from_string, import_modules_from_strings
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
    """A table of classes and functions; `build(dict(type='Name', …))` makes an instance."""

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

    def register_module(self, name: str | list[str] | None = None, force: bool = False, module: Any = None) -> Any:
        """`@REGISTRY.register_module()`, or `REGISTRY.register_module(module=cls)`."""
        if module is None:
            return lambda module: self.register_module(name, force, module)
        names = [module.__name__] if name is None else [name] if isinstance(name, str) else list(name)
        for key in names:
            known = self._module_dict.get(key)
            again = known is not None and (known.__module__, known.__qualname__) == (module.__module__, module.__qualname__)
            if known is not None and not force and not again:
                raise KeyError(f"{key} is already registered in {self._name} at {known.__module__}")
            self._module_dict[key] = module
        return module

    def import_from_location(self) -> None:
        """Import the modules that register what belongs here."""
        if not self._imported:
            self._imported = True
            import_modules_from_strings(self._locations)

    def get(self, key: str) -> Any:
        """What is registered under a name, a scope and a name, or what a dotted path names; None if there is nothing."""
        if not isinstance(key, str):
            raise TypeError(f"The key argument of `Registry.get` must be a str, got {type(key)}")
        scope, _, real_key = key.partition(".")
        if real_key and (scope == self._scope or scope in self._children):
            return (self if scope == self._scope else self._children[scope]).get(real_key)
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
        """The registry of a scope, or of the default one, where it has a table of this kind."""
        with DefaultScope.overwrite_default_scope(scope):
            default = DefaultScope.get_current_instance()
            wanted = default.scope_name if default is not None else None
            yield self if wanted in (None, self._scope) else self.root._children.get(wanted, self)

    def names(self) -> list[str]:
        """Everything that can be built here."""
        self.import_from_location()
        return sorted({*self._module_dict, *(self.parent.names() if self.parent is not None else ())})


def build_from_cfg(cfg: Any, registry: Registry, default_args: Any = None) -> Any:
    """An instance of `cfg['type']`, with the rest of `cfg` and, where it is silent, `default_args`."""
    if not hasattr(cfg, "keys"):
        raise TypeError(f"cfg should be a dict, ConfigDict or Config, but got {type(cfg)}")
    args = {**(default_args or {}), **dict(cfg.items())}
    if "type" not in args:
        raise KeyError(f'`cfg` or `default_args` must contain the key "type", but got {cfg}\n{default_args}')
    kind = args.pop("type")
    with registry.switch_scope_and_registry(args.pop("_scope_", None)) as current:
        if isinstance(kind, str):
            found = current.get(kind)
            if found is None:
                raise KeyError(f"{kind} is not in the {current.scope}::{current.name} registry{suggest(kind, current.names())}")
        elif callable(kind):
            found = kind
        else:
            raise TypeError(f"type must be a str or valid type, but got {type(kind)}")
        if inspect.isclass(found) and issubclass(found, ManagerMixin):
            return found.get_instance(**args)
        return found(**args)


def build_model_from_cfg(cfg: Any, registry: Registry, default_args: Any = None) -> Any:
    """A model, or for a list of configs a `Sequential` of them."""
    if isinstance(cfg, list):
        from hookline.compat.mmengine.model import Sequential

        return Sequential(*(build_from_cfg(each, registry, default_args) for each in cfg))
    return build_from_cfg(cfg, registry, default_args)


def build_runner_from_cfg(cfg: Any, registry: Registry) -> Any:
    """A runner of `runner_type`, by its `from_cfg`."""
    kind = cfg.get("runner_type", "Runner")
    found = registry.get(kind) if isinstance(kind, str) else kind
    if found is None:
        raise KeyError(f"{kind} is not in the {registry.name} registry{suggest(kind, registry.names())}")
    return found.from_cfg(cfg)


def build_scheduler_from_cfg(cfg: Any, registry: Registry, default_args: Any = None) -> Any:
    """A parameter scheduler; `convert_to_iter_based` turns one given in epochs into one of iterations."""
    args = {**(default_args or {}), **dict(cfg.items())}
    epoch_length = args.pop("epoch_length", None)
    if not args.pop("convert_to_iter_based", False):
        return build_from_cfg(args, registry)
    kind = args.pop("type")
    found = registry.get(kind) if isinstance(kind, str) else kind
    return found.build_iter_from_epoch(epoch_length=epoch_length, **args)


def init_default_scope(scope: str) -> None:
    """Look names up in a scope first from now on."""
    DefaultScope.get_instance(f"{scope}-{len(DefaultScope._instance_dict)}", scope_name=scope)


def _scope_of_caller() -> str:
    """The top package of the module that makes a registry."""
    frame: Any = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return "mmengine" if frame is None else frame.f_globals.get("__name__", "mmengine").split(".")[0]


def _root(name: str, *locations: str, build_func: Callable[..., Any] | None = None) -> Registry:
    return Registry(name, build_func=build_func, scope="mmengine", locations=[f"hookline.compat.mmengine.{place}" for place in locations])


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

__getattr__ = not_covered(__name__, [name for name in globals() if name[0].isupper() or name.startswith(("build_", "init_"))])
