"""Compiled dispatch: each site is a tuple of ready callables, of the hooks that really have it, in their order."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from hookline.engine.arguments import Call, bind
from hookline.engine.costs import HOT, Costs
from hookline.engine.hook import BaseHook
from hookline.engine.priority import get_priority
from hookline.engine.sites import FOREIGN_NAMES, OWNED, PER_EPOCH, PER_ITERATION, SITE_NAMES
from hookline.errors import RegistrationError, suggest

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Order = Literal["nested", "flat"]


class Sites:
    """What runs at each site. The loop reads the tuples as attributes: `for call in sites.after_train_iter: call(runner)`."""

    before_run: tuple[Call, ...]
    after_load_checkpoint: tuple[Call, ...]
    before_train: tuple[Call, ...]
    before_epoch: tuple[Call, ...]
    before_train_epoch: tuple[Call, ...]
    before_train_iter: tuple[Call, ...]
    after_forward: tuple[Call, ...]
    optimize: tuple[Call, ...]
    after_backward: tuple[Call, ...]
    after_optimizer_step: tuple[Call, ...]
    after_train_iter: tuple[Call, ...]
    after_train_epoch: tuple[Call, ...]
    before_val: tuple[Call, ...]
    before_val_epoch: tuple[Call, ...]
    before_val_iter: tuple[Call, ...]
    after_val_iter: tuple[Call, ...]
    after_val_epoch: tuple[Call, ...]
    after_val: tuple[Call, ...]
    after_epoch: tuple[Call, ...]
    before_save_checkpoint: tuple[Call, ...]
    after_save_checkpoint: tuple[Call, ...]
    after_train: tuple[Call, ...]
    before_test: tuple[Call, ...]
    before_test_epoch: tuple[Call, ...]
    before_test_iter: tuple[Call, ...]
    after_test_iter: tuple[Call, ...]
    after_test_epoch: tuple[Call, ...]
    after_test: tuple[Call, ...]
    after_run: tuple[Call, ...]
    on_exception: tuple[Call, ...]
    cleanup: tuple[Call, ...]

    def __init__(self) -> None:
        self.plan: dict[str, list[BaseHook]] = {}
        self.costs = Costs()
        self.costs.swap = self._swap
        self._plain: dict[str, tuple[Call, ...]] = {}
        self._timed: dict[str, tuple[Call, ...]] = {}

    def compile(self, hooks: list[BaseHook], order: Order, services: Mapping[str, Any], is_main: bool = True) -> None:
        """Make the tuples anew; `hooks` are in order of registration."""
        inward = sorted(hooks, key=lambda hook: get_priority(hook.priority))  # stable: registration breaks ties
        outward = inward if order == "flat" else inward[::-1]
        extra = [site for hook in hooks for site in hook.extra_sites]
        self.plan = {}
        for site in dict.fromkeys((*SITE_NAMES, *extra)):
            calls, timed = [], []
            self.plan[site] = here = []
            for hook in inward if site.startswith("before_") else outward:
                method = hook.site_method(site)
                if method is None or (hook.ranks == "main" and not is_main):
                    continue
                here.append(hook)
                calls.append(_gate(hook, site, bind(method, f"{hook.name}.{method.__name__}", services)))
                timed.append(self.costs.timed(calls[-1], hook.name, site))
            setattr(self, site, tuple(calls if site in HOT else timed))
            if site in HOT:
                self._plain[site], self._timed[site] = tuple(calls), self.costs.with_phases(site, tuple(timed))

    def calls(self, site: str) -> tuple[Call, ...]:
        """The callables of a site given by name; for custom loops, where the name is not known beforehand."""
        if site not in self.plan:
            raise ValueError(f"unknown site {site!r}{suggest(site, self.plan)}")
        return getattr(self, site)  # type: ignore[no-any-return]

    def _swap(self, timed: bool) -> None:
        vars(self).update(self._timed if timed else self._plain)


def check_hook(hook: BaseHook, others: Iterable[BaseHook], services: Mapping[str, Any]) -> None:
    """Refuse a hook that could not work, before it is registered."""
    if not isinstance(hook, BaseHook):
        raise TypeError(f"a hook is an instance of BaseHook or a config with a 'type', got {hook!r}")
    get_priority(hook.priority)
    if hook.ranks not in ("all", "main", "collective"):
        raise RegistrationError(f"{hook.name}: 'ranks' must be 'all', 'main' or 'collective', got {hook.ranks!r}")
    for name, member in inspect.getmembers_static(type(hook)) if hasattr(inspect, "getmembers_static") else _members(type(hook)):
        if isinstance(member, dataclasses.Field):
            raise RegistrationError(f"{hook.name}: {name!r} is declared with state(...), which needs @dataclass on the class")
        if inspect.isfunction(member):
            _check_site_name(hook, name)
    for site in (*SITE_NAMES, *hook.extra_sites):
        method = hook.site_method(site)
        if method is not None:
            bind(method, f"{hook.name}.{method.__name__}", services)
    for site in OWNED:
        owner = next((other for other in others if other.site_method(site)), None) if hook.site_method(site) else None
        if owner is not None:
            raise RegistrationError(
                f"{hook.name} and {owner.name} both own {site!r}, and only one hook can: remove one, "
                f"or replace it with runner.unregister_hook({owner.name!r})"
            )


def _check_site_name(hook: BaseHook, name: str) -> None:
    known = {*SITE_NAMES, *hook.site_aliases, *hook.extra_sites}
    if name in known or name.startswith("_"):
        return
    if name in FOREIGN_NAMES and name not in ("teardown",):
        raise RegistrationError(f"{hook.name}.{name} is never called: Hookline's name for that site is {FOREIGN_NAMES[name]!r}")
    if name.startswith(("before_", "after_")):
        hint = suggest(name, SITE_NAMES)
        raise RegistrationError(f"{hook.name}.{name} looks like a site but is none{hint} (a site of your own goes into extra_sites)")


def _gate(hook: BaseHook, site: str, call: Call) -> Call:
    """Honour `frequency`: iterations are counted, or epochs for a hook that has no per-iteration site."""
    if hook.frequency == 1 and type(hook).should_trigger is BaseHook.should_trigger:
        return call
    per_iteration = any(hook.site_method(other) for other in PER_ITERATION)
    if site not in (PER_ITERATION if per_iteration else PER_EPOCH):
        return call
    due: Callable[[int], bool] = hook.should_trigger
    if per_iteration:
        return lambda runner: call(runner) if due(runner.iter) else None
    return lambda runner: call(runner) if due(runner.epoch) else None


def _members(cls: type) -> list[tuple[str, Any]]:
    """`inspect.getmembers_static`, which Python has only since 3.11."""
    return [(name, inspect.getattr_static(cls, name)) for name in dir(cls)]


def culprit(error: BaseException, runner: BaseRunner) -> str | None:
    """Which hook at which site an error came out of, read from its traceback (nothing is recorded on the hot path)."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        name = trace.tb_frame.f_code.co_name
        hook = next((hook for hook in runner.hooks if hook is owner), None)
        if hook is not None:
            site = hook.site_aliases.get(name, name)
            if site in runner.sites.plan:
                found = f"{hook.name} at {site}"
        trace = trace.tb_next
    return found
