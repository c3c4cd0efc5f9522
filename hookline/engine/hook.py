"""The base of all hooks, and the registry that builds them from a config."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hookline.engine.adapters import adapt, adapter_for, adapter_of
from hookline.engine.priority import Priority, get_priority
from hookline.engine.sites import SITE_NAMES
from hookline.errors import Problem, suggest
from hookline.registry import Registry
from hookline.signature import fits, parameters

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


def state(default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING) -> Any:
    """A dataclass field that is not configured but kept: it goes into the checkpoint and comes back on resume."""
    if isinstance(default, (list, dict, set)):
        template = default
        default, default_factory = dataclasses.MISSING, lambda: copy.deepcopy(template)
    return dataclasses.field(default=default, default_factory=default_factory, init=False, repr=False, metadata={"state": True})


class BaseHook:
    """Behaviour that is added to a run: methods named after sites (see `hookline.engine.sites` for the loop).

    A method gets `runner`, or whatever it names instead: `def after_epoch(self, epoch, model, metrics)`. Most hooks are
    dataclasses, whose fields are their configuration and whose `state(...)` fields survive a resume; a plain class with
    an `__init__` of its own, which need not call `super().__init__()`, is as good.
    """

    priority: int | str | Priority = Priority.NORMAL
    name: str = ""  # unique in a runner; given at registration if empty
    runner: BaseRunner = None  # type: ignore[assignment]  # set at registration
    frequency: int = 1  # every how many iterations (epochs, for a hook without per-iteration sites) it is called
    ranks: ClassVar[str] = "all"  # where it runs in a distributed job: "all", "main" or "collective"
    site_aliases: ClassVar[Mapping[str, str]] = {}  # other names of sites under which this class has its methods
    extra_sites: ClassVar[tuple[str, ...]] = ()  # sites of a custom loop, called by `runner.call_hook(name)`

    def before_run(self, runner: BaseRunner) -> None: ...
    def after_run(self, runner: BaseRunner) -> None: ...
    def before_train(self, runner: BaseRunner) -> None: ...
    def after_train(self, runner: BaseRunner) -> None: ...
    def before_epoch(self, runner: BaseRunner) -> None: ...
    def after_epoch(self, runner: BaseRunner) -> None: ...
    def before_train_epoch(self, runner: BaseRunner) -> None: ...
    def after_train_epoch(self, runner: BaseRunner) -> None: ...
    def before_train_iter(self, runner: BaseRunner) -> None: ...
    def after_forward(self, runner: BaseRunner) -> None: ...
    def after_backward(self, runner: BaseRunner) -> None: ...
    def after_optimizer_step(self, runner: BaseRunner) -> None: ...
    def after_train_iter(self, runner: BaseRunner) -> None: ...
    def before_val(self, runner: BaseRunner) -> None: ...
    def after_val(self, runner: BaseRunner) -> None: ...
    def before_val_epoch(self, runner: BaseRunner) -> None: ...
    def after_val_epoch(self, runner: BaseRunner) -> None: ...
    def before_val_iter(self, runner: BaseRunner) -> None: ...
    def after_val_iter(self, runner: BaseRunner) -> None: ...
    def before_test(self, runner: BaseRunner) -> None: ...
    def after_test(self, runner: BaseRunner) -> None: ...
    def before_test_epoch(self, runner: BaseRunner) -> None: ...
    def after_test_epoch(self, runner: BaseRunner) -> None: ...
    def before_test_iter(self, runner: BaseRunner) -> None: ...
    def after_test_iter(self, runner: BaseRunner) -> None: ...
    def before_save_checkpoint(self, runner: BaseRunner) -> None: ...
    def after_save_checkpoint(self, runner: BaseRunner) -> None: ...
    def after_load_checkpoint(self, runner: BaseRunner) -> None: ...
    def on_exception(self, runner: BaseRunner) -> None: ...
    def cleanup(self, runner: BaseRunner) -> None: ...

    # When: all of these are for `after_*` sites, where the current iteration or epoch is not counted yet.

    def every_n_epochs(self, runner: BaseRunner, n: int, start: int = 0) -> bool:
        return n > 0 and runner.epoch + 1 >= start and (runner.epoch + 1 - start) % n == 0

    def every_n_iters(self, runner: BaseRunner, n: int, start: int = 0) -> bool:
        return n > 0 and runner.iter + 1 >= start and (runner.iter + 1 - start) % n == 0

    every_n_train_iters = every_n_iters

    def every_n_inner_iters(self, runner: BaseRunner, n: int) -> bool:
        return n > 0 and (runner.batch_idx + 1) % n == 0

    def end_of_epoch(self, runner: BaseRunner) -> bool:
        return runner.epoch_length is not None and runner.inner_iter + 1 == runner.epoch_length

    def is_last_epoch(self, runner: BaseRunner) -> bool:
        return runner.max_epochs is not None and runner.epoch + 1 >= runner.max_epochs

    is_last_train_epoch = is_last_epoch

    def is_last_iter(self, runner: BaseRunner) -> bool:
        return runner.max_iters is not None and runner.iter + 1 >= runner.max_iters

    is_last_train_iter = is_last_iter

    def should_trigger(self, step: int) -> bool:
        """Whether the hook is due at a step (or epoch, see `frequency`); override it for rules of your own."""
        return step % self.frequency == 0

    def get_triggered_stages(self) -> list[str]:
        """The sites at which this hook does something, in the order of a run."""
        return [site for site in SITE_NAMES if self.site_method(site) is not None]

    def site_method(self, site: str) -> Callable[..., Any] | None:
        """The hook's own method for a site, None if it leaves the site alone."""
        for name in (site, *(alias for alias, target in self.site_aliases.items() if target == site)):
            method = getattr(self, name, None)
            inherited = getattr(method, "__func__", None) is BaseHook.__dict__.get(name, method)
            if callable(method) and not inherited:
                return method  # type: ignore[no-any-return]
        return None

    def leave_alone(self, *sites: str) -> None:
        """Not even be called at sites that this instance, as it is configured, has nothing to do at."""
        for site in sites:
            self.__dict__[site] = None

    def get_service(self, name: str) -> Any:
        """A service of the runner (`logger`, `model`, or one of your own), None if there is none of that name."""
        return None if self.runner is None else self.runner.get_service(name)

    def state_dict(self) -> dict[str, Any]:
        """The values of the `state(...)` fields."""
        return {field.name: getattr(self, field.name) for field in _state_fields(self)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        for field in _state_fields(self):
            if field.name in state:
                setattr(self, field.name, copy.deepcopy(state[field.name]))  # what the hook changes is not the checkpoint's


class RegistryOfHooks(Registry[BaseHook]):
    """The registry of hooks: besides its own parameters every hook takes `name`, `priority` and `frequency`."""

    COMMON: ClassVar[dict[str, type]] = {"name": str, "priority": object, "frequency": int}

    def register(self, name: str | type | None = None, *, force: bool = False) -> Any:
        """As every registry does; a dataclass takes what every hook does in Python too, and tells the nearest name of what it does not."""
        if isinstance(name, type):  # used without parentheses
            return self.register()(name)
        decorate = super().register(name, force=force)
        return lambda cls: decorate(_taking_common(cls))

    def check(self, config: Mapping[str, Any], provided: frozenset[str] = frozenset()) -> list[Problem]:
        return super().check(config, provided) + _check_common(str(config.get("type")), config)

    def arguments(self, config: Mapping[str, Any]) -> dict[str, Any]:
        own = parameters(self.signature_of(self.get(config["type"]))).known
        return {str(key): value for key, value in config.items() if key != "type" and (key in own or key not in self.COMMON)}

    def build(self, config: Mapping[str, Any] | BaseHook | str, **extra: Any) -> BaseHook:
        """As every registry does; a callback of another framework, ready or named by its dotted path, is wrapped."""
        hook: BaseHook = adapt(super().build(config, **extra))
        if not isinstance(hook, BaseHook):
            raise not_a_hook(hook)
        if isinstance(config, Mapping):
            for key in self.COMMON:
                if key in config:
                    setattr(hook, key, config[key])
        return hook

    def signature_of(self, cls: type[BaseHook]) -> Callable[..., Any]:
        return getattr(cls, "from_config", cls) if issubclass(cls, BaseHook) else cls

    def construct(self, cls: type[BaseHook], arguments: dict[str, Any]) -> BaseHook:
        hook: BaseHook = self.signature_of(cls)(**arguments)
        return hook

    def _import(self, path: str) -> type[BaseHook]:
        try:
            adapter_for(path)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != path.partition(".")[0]:
                raise  # the framework is there, and what it needs is not
        return super()._import(path)

    def _checked(self, target: Any, path: str) -> type[BaseHook]:
        if isinstance(target, type) and not issubclass(target, BaseHook) and adapter_of(target) is not None:
            return target  # type: ignore[return-value]  # a hook is made of what it builds
        return super()._checked(target, path)


def _check_common(label: str, given: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the name, priority and frequency of a hook, as far as they are given."""
    problems = []
    if "priority" in given:
        try:
            get_priority(given["priority"])
        except (TypeError, ValueError) as error:
            problems.append(Problem(f"{label}: {error}", ("priority",)))
    for key, kind, wanted in (("name", str, "text"), ("frequency", int, "a whole number of at least 1")):
        value: Any = given.get(key)
        if key in given and (not fits(value, kind) or (key == "frequency" and value < 1)):
            problems.append(Problem(f"{label}: {key!r} must be {wanted}, got {value!r}", (key,)))
    return problems


def _taking_common(cls: Any) -> Any:
    """The class of a hook; the constructor that `@dataclass` wrote for it takes what is common to all hooks as well."""
    made = vars(cls).get("__dataclass_params__")
    if made is None or not made.init or hasattr(cls.__init__, "__wrapped__"):
        return cls
    make, code = cls.__init__, cls.__init__.__code__
    own = set(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])  # cheaper than a signature, for each class at import

    @functools.wraps(make)
    def init(self: BaseHook, *args: Any, **given: Any) -> None:
        common = {key: given.pop(key) for key in RegistryOfHooks.COMMON if key in given and key not in own}
        for name in given:
            if name not in own:
                raise TypeError(f"{cls.__name__}: unknown parameter {name!r}{suggest(name, {*own, *RegistryOfHooks.COMMON})}")
        for problem in _check_common(cls.__name__, common):
            raise ValueError(problem.message)
        make(self, *args, **given)
        for key, value in common.items():
            setattr(self, key, value)

    cls.__init__ = init
    return cls


def not_a_hook(given: object) -> TypeError:
    """What to say of something that stands where a hook should."""
    if not isinstance(given, type):
        return TypeError(f"a hook is an instance of BaseHook or a config with a 'type', got {given!r}")
    arguments = ", ".join(f"{name}=…" for name in parameters(given).required())
    return TypeError(f"{given.__name__} is a class; pass an object: {given.__name__}({arguments})")


def _state_fields(hook: BaseHook) -> list[dataclasses.Field[Any]]:
    if not dataclasses.is_dataclass(hook):
        return []
    return [field for field in dataclasses.fields(hook) if field.metadata.get("state")]


HOOKS = RegistryOfHooks("hook", BaseHook, home="hookline.hooks")
