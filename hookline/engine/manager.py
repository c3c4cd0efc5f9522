"""Register hooks and services, and compile them into the calls of each site.

Registering a hook rebuilds a tuple of bound methods for each site, with only the hooks that
implement it. The loop iterates over these tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from hookline.arguments import Call, bind, get_argument, set_arguments
from hookline.engine.hook import HOOKS, BaseHook
from hookline.engine.sites import OWNED, PER_EPOCH, PER_ITERATION, SITE_NAMES
from hookline.errors import ConfigError, RegistrationError, suggest
from hookline.hook_checks import check_hook, check_owner, unique_name
from hookline.hook_registry import hook_type_error
from hookline.priority import PriorityLike, describe_order, get_priority, put_reports_last
from hookline.profiling.hook_costs import HOT_SITES, HookCosts
from hookline.tracebacks import HookMethods

Order = Literal["nested", "flat"]
HookOrConfig = BaseHook | Mapping[str, Any]
# Adds the location in a config to the error of a hook or metric.
LocateError = Callable[[object, ConfigError], ConfigError]


class Sites:
    """The calls of each site: `for call in sites.after_train_iter: call(runner)`."""

    def __init__(self, order: Order = "nested", locate_error: LocateError | None = None) -> None:
        if order not in ("nested", "flat"):
            raise ValueError(f"hook_order must be 'nested' or 'flat', got {order!r}")
        self.order: Order = order
        self.hooks: dict[str, list[BaseHook]] = {}  # the hooks of each site, in order
        self.methods = HookMethods()
        self.services = SimpleNamespace()
        self.costs = HookCosts(self._select)
        self._locate_error = locate_error
        self._plain: dict[str, tuple[Call, ...]] = {}
        self._timed: dict[str, tuple[Call, ...]] = {}

    if TYPE_CHECKING:  # `compile` sets an attribute for each site.

        def __getattr__(self, site: str) -> tuple[Call, ...]: ...

    def calls(self, site: str) -> tuple[Call, ...]:
        """Return the calls of a site by its name."""
        if site not in self.hooks:
            raise ValueError(f"unknown site {site!r}{suggest(site, self.hooks)}")
        calls: tuple[Call, ...] = getattr(self, site)
        return calls

    def compile(self, hooks: list[BaseHook], is_main: bool) -> None:
        """Build the calls of all sites from hooks in their order of registration."""
        inward = sorted(hooks, key=lambda hook: get_priority(hook.priority))
        outward = inward if self.order == "flat" else inward[::-1]
        services = vars(self.services)
        extra = [site for hook in hooks for site in hook.extra_sites]
        self.hooks = {}
        self.methods.clear()
        for site in dict.fromkeys((*SITE_NAMES, *extra)):
            self.hooks[site] = []
            plain = []
            timed = []
            for hook in put_reports_last(site, inward if site.startswith("before_") else outward):
                method = hook.site_method(site)
                if method is None or (hook.ranks == "main" and not is_main):
                    continue
                self.hooks[site].append(hook)
                self.methods.add(method, hook.name, site)
                label = f"{hook.name}.{method.__name__}"
                plain.append(_gate(hook, site, bind(method, label, services)))
                timed.append(self.costs.timed(plain[-1], hook.name, site))
            if site in HOT_SITES:
                self._plain[site] = tuple(plain)
                self._timed[site] = self.costs.with_phases(site, tuple(timed))
            else:
                setattr(self, site, tuple(timed))
        self._select(timed=False)

    def locate_error(self, part: object, error: Exception) -> Exception:
        """Add the location in the config to a ConfigError of a hook or metric."""
        if self._locate_error is None or not isinstance(error, ConfigError):
            return error
        return self._locate_error(part, error)

    def _select(self, timed: bool) -> None:
        """Make per-iteration sites use the timed calls, or the plain ones."""
        vars(self).update(self._timed if timed else self._plain)


class HookManager:
    """The hooks and services of a runner."""

    is_main = True  # in a distributed job, whether this process writes files

    def __init__(self, order: Order = "nested", locate_error: LocateError | None = None) -> None:
        self.hooks: list[BaseHook] = []  # in order of registration
        self.sites = Sites(order, locate_error)
        self._compile()

    def register_hook(self, hook: HookOrConfig, priority: PriorityLike | None = None) -> BaseHook:
        """Add a hook, a config `{type: …}`, or a callback of another framework.

        A priority given here wins over the config's, which wins over the class's.
        """
        if isinstance(hook, str):
            raise hook_type_error(hook)
        built = HOOKS.build(hook)
        if any(built is known for known in self.hooks):
            raise RegistrationError(f"{built.name} is already registered", component=built.name)
        former = built.name, built.priority
        built.name = unique_name(built, [other.name for other in self.hooks])
        if priority is not None:
            built.priority = priority
        try:
            check_hook(built, SITE_NAMES, vars(self.sites.services))
            for site in OWNED:
                check_owner(built, self.hooks, site)
        except (TypeError, ValueError):
            built.name, built.priority = former
            raise
        built.runner = self  # type: ignore[assignment]
        self.hooks.append(built)
        self._compile()
        return built

    def register_hooks(self, hooks: Iterable[HookOrConfig]) -> None:
        """Add several hooks."""
        for hook in hooks:
            self.register_hook(hook)

    def unregister_hook(self, name: str) -> BaseHook:
        """Remove a hook and return it."""
        hook: BaseHook = self.hook(name)
        self.hooks = [other for other in self.hooks if other is not hook]
        hook.runner = None  # type: ignore[assignment]
        self._compile()
        return hook

    def hook(self, name: str) -> Any:
        """Return the hook of a name."""
        for hook in self.hooks:
            if hook.name == name:
                return hook
        raise KeyError(f"no hook {name!r}{suggest(name, [hook.name for hook in self.hooks])}")

    def get_hooks_info(self) -> str:
        """Return, as text, the hooks of each site in the order in which they run."""
        return describe_order(self.sites.hooks)

    def register_service(self, name: str, service: Any) -> None:
        """Make an object available to hooks, as an argument and by `get_service(name)`."""
        if not name.isidentifier():
            raise ValueError(f"a service's name must be a Python identifier, got {name!r}")
        setattr(self.sites.services, name, service)
        self._compile()

    def get_service(self, name: str) -> Any:
        """Return a service, or one of the arguments of hook methods; None if there is none."""
        return get_argument(self, vars(self.sites.services), name)

    def call_hook(self, site: str, **values: Any) -> None:
        """Call the hooks of a site, after setting values such as `batch_idx` on the runner."""
        if values:
            set_arguments(self, site, values)
        for call in self.sites.calls(site):
            call(self)

    def _compile(self) -> None:
        self.sites.compile(self.hooks, self.is_main)


def _gate(hook: BaseHook, site: str, call: Call) -> Call:
    """Apply `frequency`: in iterations, or in epochs if the hook has no per-iteration site."""
    if hook.frequency == 1 and type(hook).should_trigger is BaseHook.should_trigger:
        return call
    per_iteration = any(hook.site_method(other) for other in PER_ITERATION)
    if site not in (PER_ITERATION if per_iteration else PER_EPOCH):
        return call
    should_trigger: Callable[[int], bool] = hook.should_trigger
    if per_iteration:
        return lambda runner: call(runner) if should_trigger(runner.iter) else None
    return lambda runner: call(runner) if should_trigger(runner.epoch) else None
