"""The base class of MMCV's hooks, and their registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from hookline import engine
from hookline.compat.mmcv.utils.registry import Registry
from hookline.intervals import is_due

HOOKS = Registry("hook")

GENERAL_SITES = ("before_epoch", "after_epoch", "before_iter", "after_iter")
# The general method that a particular one calls unless it is overridden.
GENERAL_SITE = {}
for _site in GENERAL_SITES:
    _when, _unit = _site.split("_")
    for _mode in ("train", "val"):
        GENERAL_SITE[f"{_when}_{_mode}_{_unit}"] = _site
SITES = ("before_run", "after_run", *GENERAL_SITES, *GENERAL_SITE)


class Hook(engine.BaseHook):
    """The base class of MMCV's hooks, with ten sites, at each of which the runner is passed.

    `before_epoch`, `after_epoch`, `before_iter` and `after_iter` stand for training and validation
    together. Sites of Hookline that MMCV lacks can be used too: `cleanup`, `on_exception`,
    `before_save_checkpoint` and others.
    """

    stages = (
        "before_run",
        "before_train_epoch",
        "before_train_iter",
        "after_train_iter",
        "after_train_epoch",
        "before_val_epoch",
        "before_val_iter",
        "after_val_iter",
        "after_val_epoch",
        "after_run",
    )
    extra_sites: ClassVar[tuple[str, ...]] = ("before_iter", "after_iter")
    # Whether `frequency` is an attribute of the subclass, and not Hookline's option.
    owns_frequency: bool = False
    # Whether the hook may read a checkpoint that a hook before it has saved at the same site.
    reads_checkpoints: ClassVar[bool] = True

    def before_run(self, runner: Any) -> None: ...
    def after_run(self, runner: Any) -> None: ...
    def before_epoch(self, runner: Any) -> None: ...
    def after_epoch(self, runner: Any) -> None: ...
    def before_iter(self, runner: Any) -> None: ...
    def after_iter(self, runner: Any) -> None: ...

    def before_train_epoch(self, runner: Any) -> None:
        self.before_epoch(runner)

    def before_val_epoch(self, runner: Any) -> None:
        self.before_epoch(runner)

    def after_train_epoch(self, runner: Any) -> None:
        self.after_epoch(runner)

    def after_val_epoch(self, runner: Any) -> None:
        self.after_epoch(runner)

    def before_train_iter(self, runner: Any) -> None:
        self.before_iter(runner)

    def before_val_iter(self, runner: Any) -> None:
        self.before_iter(runner)

    def after_train_iter(self, runner: Any) -> None:
        self.after_iter(runner)

    def after_val_iter(self, runner: Any) -> None:
        self.after_iter(runner)

    def every_n_inner_iters(self, runner: Any, n: int) -> bool:
        return is_due(runner.inner_iter + 1, n)

    def end_of_epoch(self, runner: Any) -> bool:
        return bool(runner.inner_iter + 1 == len(runner.data_loader))

    def is_last_epoch(self, runner: Any) -> bool:
        return bool(runner.epoch + 1 == runner._max_epochs)

    def is_last_iter(self, runner: Any) -> bool:
        return bool(runner.iter + 1 == runner._max_iters)

    def get_triggered_stages(self) -> list[str]:
        """Return the stages at which this hook does something, in the order of a run."""
        return [stage for stage in Hook.stages if self._acts_at(stage)]

    def should_trigger(self, step: int) -> bool:
        """Return whether the hook runs at a step; MMCV has no `frequency`."""
        return self.owns_frequency or super().should_trigger(step)

    def site_method(self, site: str) -> Callable[..., Any] | None:
        if site not in SITES:
            method = super().site_method(site)
            if method is not None and site in self.extra_sites:
                return _with_runner(method)
            return method
        return _with_runner(getattr(self, site)) if self._acts_at(site) else None

    def _acts_at(self, site: str) -> bool:
        return self._overrides(site) or self._overrides(GENERAL_SITE.get(site, site))

    def _overrides(self, name: str) -> bool:
        return name in vars(self) or getattr(type(self), name, None) is not getattr(Hook, name)


def _with_runner(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that is called with the runner, whatever the name of its parameter."""
    if list(inspect.signature(method).parameters) == ["runner"]:
        return method

    def call(*args: Any) -> Any:
        return method(*args)

    call.__name__ = getattr(method, "__name__", "call")
    return call
