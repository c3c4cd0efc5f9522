"""Hooks and services of a runner: registering, naming, finding, and the order that results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from hookline.engine.arguments import ARGUMENTS
from hookline.engine.dispatch import Order, Sites, check_hook
from hookline.engine.hook import HOOKS, BaseHook, not_a_hook
from hookline.engine.priority import Priority, get_priority
from hookline.errors import suggest

HookOrConfig = BaseHook | Mapping[str, Any]


class HookHost:
    """Keeps hooks and services, and compiles them into what runs at each site."""

    is_main = True  # in a distributed job, whether this is the process that writes

    def __init__(self, hook_order: Order = "nested") -> None:
        if hook_order not in ("nested", "flat"):
            raise ValueError(f"hook_order must be 'nested' or 'flat', got {hook_order!r}")
        self.hook_order: Order = hook_order
        self.hooks: list[BaseHook] = []  # in order of registration
        self.services = SimpleNamespace()
        self.sites = Sites()
        self._compile()

    def register_hook(self, hook: HookOrConfig, priority: int | str | Priority | None = None) -> BaseHook:
        """Add a hook, one built from `{type: …}`, or a callback of another framework. A priority given here wins over all others."""
        if isinstance(hook, str):
            raise not_a_hook(hook)
        built = HOOKS.build(hook)
        if any(built is known for known in self.hooks):
            raise ValueError(f"{built.name} is registered already")
        former = built.name, built.priority
        built.name = self._unique_name(built)
        if priority is not None:
            built.priority = priority
        try:
            check_hook(built, self.hooks, vars(self.services))
        except (TypeError, ValueError):
            built.name, built.priority = former
            raise
        built.runner = self  # type: ignore[assignment]  # the runner is the only host
        self.hooks.append(built)
        self._compile()
        return built

    def register_hooks(self, hooks: Iterable[HookOrConfig]) -> None:
        for hook in hooks:
            self.register_hook(hook)

    def unregister_hook(self, name: str) -> BaseHook:
        """Remove a hook and return it."""
        hook = self.hook(name)
        self.hooks = [other for other in self.hooks if other is not hook]
        hook.runner = None  # type: ignore[assignment]
        self._compile()
        return hook

    def hook(self, name: str) -> BaseHook:
        """The hook of a name; KeyError with the nearest one if there is none."""
        for hook in self.hooks:
            if hook.name == name:
                return hook
        raise KeyError(f"no hook {name!r}{suggest(name, [hook.name for hook in self.hooks])}")

    def get_hooks_info(self) -> str:
        """For each site the hooks that run there, in their order, as readable text."""
        blocks = []
        for site, hooks in self.sites.plan.items():
            if hooks:
                rows = [f"  ({_priority_label(hook):<16}) {hook.name}" for hook in hooks]
                blocks.append("\n".join([f"{site}:", *rows]))
        return "\n".join(blocks)

    def register_service(self, name: str, service: Any) -> None:
        """Make an object available to hooks, as an argument by its name and by `get_service(name)`."""
        if not name.isidentifier():
            raise ValueError(f"a service's name must be a Python identifier, got {name!r}")
        setattr(self.services, name, service)
        self._compile()

    def get_service(self, name: str) -> Any:
        """A service, or one of the names that hook methods may ask for; None if there is none."""
        if hasattr(self.services, name):
            return getattr(self.services, name)
        if name not in ARGUMENTS:
            return None
        path = ARGUMENTS[name]
        return attrgetter(path)(self) if path else self

    def call_hook(self, site: str, **values: Any) -> None:
        """Call a site's hooks from a custom loop; `batch_idx=…, outputs=…` and the like are put on the runner first."""
        for name, value in values.items():
            if not ARGUMENTS.get(name):
                raise ValueError(f"call_hook({site!r}): unknown value {name!r}{suggest(name, ARGUMENTS)}")
            setattr(self, ARGUMENTS[name], value)
        for call in self.sites.calls(site):
            call(self)

    def _unique_name(self, hook: BaseHook) -> str:
        taken = {other.name for other in self.hooks}
        if hook.name and hook.name in taken and hook.name != type(hook).__name__:
            raise ValueError(f"there is a hook named {hook.name!r} already; names are unique in a runner")
        base = hook.name or type(hook).__name__
        number, name = 1, base
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        return name

    def _compile(self) -> None:
        self.sites.compile(self.hooks, self.hook_order, vars(self.services), self.is_main)


def refuse_unworkable(hook: BaseHook) -> None:
    """RegistrationError for a hook that no runner could register, whatever its other hooks are.

    One of another framework's kind is left for the registration: it may ask for services that its own runner brings.
    """
    if hook.site_aliases:
        return
    named, hook.name = hook.name, hook.name or type(hook).__name__
    try:
        check_hook(hook, (), {})
    finally:
        hook.name = named


def _priority_label(hook: BaseHook) -> str:
    value = get_priority(hook.priority)
    name = next((priority.name for priority in Priority if priority == value), "")
    return f"{name} {value}".strip()
