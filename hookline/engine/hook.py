"""The base class of hooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hookline.deprecation import RenamedHookMethods
from hookline.engine.sites import SITE_NAMES, SiteMethods
from hookline.hook_registry import HookRegistry
from hookline.intervals import IntervalMethods
from hookline.priority import Priority, PriorityLike
from hookline.state_fields import annotate_defaults, collect_fields, restore_fields

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


@dataclasses.dataclass(kw_only=True, init=False, repr=False, eq=False)
class BaseHook(SiteMethods, IntervalMethods, RenamedHookMethods):
    """The base of all hooks, which add behavior to a run in methods named after sites.

    Most hooks are dataclasses: fields are parameters, and `state(...)` fields are saved in
    checkpoints. A plain class works, too, even without a call of `super().__init__()`.

    Args:
        name: Unique in a runner; the class name, numbered if needed, by default.
        priority: A number from 0 to 100 or a name; hooks with smaller values wrap the others.
        frequency: Run the hook every n-th iteration, or epoch if it has no per-iteration site.
    """

    name: str = ""
    priority: PriorityLike = Priority.NORMAL
    frequency: int = 1

    ranks: ClassVar[str] = "all"  # the ranks it runs on: all, main or collective
    site_aliases: ClassVar[Mapping[str, str]] = {}  # other names of its methods, and their sites
    adds_metrics: ClassVar[bool] = True  # whether it may add to `metrics` in a validation
    reports: ClassVar[bool] = False  # whether it reads records, and so ends `after_train_iter`
    steps_schedulers: ClassVar[bool] = False  # whether it steps `runner.scheduler`
    needs_after_backward: ClassVar[bool] = True  # whether it is useless without that site
    replaces: ClassVar[tuple[str, ...]] = ()  # default hooks that a run with this one does not have
    extra_sites: ClassVar[tuple[str, ...]] = ()  # sites that a custom loop calls by name
    _runner: ClassVar[Any] = None
    _disabled_sites: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, *, name: str = "", priority: PriorityLike | None = None, frequency: int | None = None
    ) -> None:
        given = {"name": name or None, "priority": priority, "frequency": frequency}
        for key, value in given.items():
            if value is not None:
                setattr(self, key, value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        annotate_defaults(cls, BaseHook, HookRegistry.COMMON)  # `priority = "LOW"` in a dataclass

    @property
    def runner(self) -> BaseRunner:
        """The runner that the hook is registered with."""
        return self._runner  # type: ignore[no-any-return]

    @runner.setter
    def runner(self, runner: BaseRunner | None) -> None:
        self._runner = runner  # type: ignore[misc]

    def should_trigger(self, step: int) -> bool:
        """Return whether the hook runs in an iteration (or epoch, see `frequency`)."""
        return step % self.frequency == 0

    def get_triggered_stages(self) -> list[str]:
        """Return the sites that this hook implements, in the order of a run."""
        return [site for site in SITE_NAMES if self.site_method(site) is not None]

    def site_method(self, site: str) -> Callable[..., Any] | None:
        """Return the method that this hook implements for a site, or None."""
        if site in self._disabled_sites:
            return None
        aliases = [alias for alias, target in self.site_aliases.items() if target == site]
        for name in (site, *aliases):
            method = getattr(self, name, None)
            inherited = getattr(method, "__func__", None) is getattr(SiteMethods, name, method)
            if callable(method) and not inherited:
                return method  # type: ignore[no-any-return]
        return None

    def disable_sites(self, *sites: str) -> None:
        """Skip sites where this instance, as configured, has nothing to do."""
        self._disabled_sites |= frozenset(sites)  # type: ignore[misc]

    def get_service(self, name: str) -> Any:
        """Return a service of the runner (`logger`, `model`, your own), or None."""
        return None if self._runner is None else self._runner.get_service(name)

    def state_dict(self) -> dict[str, Any]:
        """Return the values of the `state(...)` fields."""
        return collect_fields(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the values that `state_dict` returned."""
        restore_fields(self, state)


HOOKS = HookRegistry("hook", BaseHook, home="hookline.hooks")
