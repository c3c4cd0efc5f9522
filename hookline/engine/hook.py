"""The base class of hooks."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from hookline.engine.sites import SITE_NAMES, SiteMethods
from hookline.hook_registry import HookRegistry
from hookline.intervals import is_due
from hookline.priority import Priority

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

T = TypeVar("T")


@overload
def state(default: T) -> T: ...


@overload
def state(*, default_factory: Callable[[], T]) -> T: ...


def state(default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING) -> Any:
    """Declare a dataclass field that is saved in the checkpoint and restored on resume.

    It is not a parameter of the hook.

    Args:
        default: The first value; each hook gets its own copy of a list, dict or set.
        default_factory: Makes the first value, in place of `default`.
    """
    if isinstance(default, (list, dict, set)):
        template = default
        default = dataclasses.MISSING
        default_factory = lambda: copy.deepcopy(template)  # noqa: E731
    return dataclasses.field(
        default=default,
        default_factory=default_factory,
        init=False,
        repr=False,
        metadata={"state": True},
    )


@dataclasses.dataclass(kw_only=True, init=False, repr=False, eq=False)
class BaseHook(SiteMethods):
    """Behavior that is added to a run, in methods named after sites.

    Most hooks are dataclasses: their fields are their parameters, and `state(...)` fields survive a
    resume. A plain class with its own `__init__`, which need not call `super().__init__()`, works
    as well.

    Args:
        name: Unique in a runner; the class name, numbered if needed, by default.
        priority: A number from 0 to 100 or a name; the smaller, the further outside.
        frequency: Call the hook every so many iterations, or epochs if it has no site in an
            iteration.
    """

    name: str = ""
    priority: int | str | Priority = Priority.NORMAL
    frequency: int = 1

    ranks: ClassVar[str] = "all"  # where it runs in a distributed job: all, main or collective
    site_aliases: ClassVar[Mapping[str, str]] = {}  # other names of its methods, and their sites
    adds_metrics: ClassVar[bool] = True  # whether its validation sites may add to `metrics`
    steps_schedulers: ClassVar[bool] = False  # whether it steps `runner.scheduler`
    extra_sites: ClassVar[tuple[str, ...]] = ()  # sites that a custom loop calls by name
    _runner: ClassVar[Any] = None
    _disabled_sites: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        *,
        name: str | None = None,
        priority: int | str | Priority | None = None,
        frequency: int | None = None,
    ) -> None:
        given = {"name": name, "priority": priority, "frequency": frequency}
        for key, value in given.items():
            if value is not None:
                setattr(self, key, value)

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a dataclass use a class attribute such as `priority = "LOW"` as its default.

        `@dataclass` only looks at annotated attributes, so the annotation is added here.
        """
        super().__init_subclass__(**options)
        own = inspect.get_annotations(cls)
        for name in HookRegistry.COMMON:
            if name in vars(cls) and name not in own:
                if dataclasses.KW_ONLY not in own.values():
                    own["_"] = dataclasses.KW_ONLY
                own[name] = BaseHook.__annotations__[name]
        cls.__annotations__ = own

    @property
    def runner(self) -> BaseRunner:
        """The runner that the hook is registered with."""
        return self._runner  # type: ignore[no-any-return]

    @runner.setter
    def runner(self, runner: BaseRunner | None) -> None:
        self._runner = runner  # type: ignore[misc]

    # These are for `after_*` sites, where the current iteration or epoch is not counted yet.

    def every_n_epochs(self, runner: BaseRunner, n: int, start: int = 0) -> bool:
        """Return whether every n-th epoch, counted from `start`, is ending."""
        return is_due(runner.epoch + 1, n, start)

    def every_n_iters(self, runner: BaseRunner, n: int, start: int = 0) -> bool:
        """Return whether every n-th iteration, counted from `start`, is ending."""
        return is_due(runner.iter + 1, n, start)

    every_n_train_iters = every_n_iters

    def every_n_inner_iters(self, runner: BaseRunner, n: int) -> bool:
        """Return whether every n-th iteration of its epoch is ending."""
        return is_due(runner.batch_idx + 1, n)

    def end_of_epoch(self, runner: BaseRunner) -> bool:
        """Return whether the epoch's last iteration is ending, if its length is known."""
        return runner.epoch_length is not None and runner.inner_iter + 1 == runner.epoch_length

    def is_last_epoch(self, runner: BaseRunner) -> bool:
        """Return whether the last epoch is ending."""
        return runner.max_epochs is not None and runner.epoch + 1 >= runner.max_epochs

    is_last_train_epoch = is_last_epoch

    def is_last_iter(self, runner: BaseRunner) -> bool:
        """Return whether the last iteration is ending."""
        return runner.max_iters is not None and runner.iter + 1 >= runner.max_iters

    is_last_train_iter = is_last_iter

    def should_trigger(self, step: int) -> bool:
        """Return whether the hook runs at a step (or epoch, see `frequency`)."""
        return step % self.frequency == 0

    def get_triggered_stages(self) -> list[str]:
        """Return the sites at which this hook does something, in the order of a run."""
        return [site for site in SITE_NAMES if self.site_method(site) is not None]

    def site_method(self, site: str) -> Callable[..., Any] | None:
        """Return the hook's own method for a site, or None if it has none."""
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
        """Never be called at sites where this instance, as configured, has nothing to do."""
        self._disabled_sites |= frozenset(sites)  # type: ignore[misc]

    def get_service(self, name: str) -> Any:
        """Return a service of the runner (`logger`, `model`, your own), or None."""
        return None if self._runner is None else self._runner.get_service(name)

    def state_dict(self) -> dict[str, Any]:
        """Return the values of the `state(...)` fields."""
        return {field.name: getattr(self, field.name) for field in _state_fields(self)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the values that `state_dict` returned."""
        for field in _state_fields(self):
            if field.name in state:
                # A copy: the hook may change its value, and the checkpoint must not change.
                setattr(self, field.name, copy.deepcopy(state[field.name]))


def _state_fields(hook: BaseHook) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(hook) if field.metadata.get("state")]


HOOKS = HookRegistry("hook", BaseHook, home="hookline.hooks")
