"""The base of hooks written for MMCV, and their registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from hookline import engine
from hookline.compat.mmcv.utils.registry import Registry

HOOKS = Registry("hook")

# Which general method a particular one calls unless it is overridden.
FANS_IN = {
    f"{when}_{mode}_{unit}": f"{when}_{unit}" for when in ("before", "after") for mode in ("train", "val") for unit in ("epoch", "iter")
}
SITES = ("before_run", "after_run", *dict.fromkeys(FANS_IN.values()), *FANS_IN)


class Hook(engine.BaseHook):
    """Ten sites, each given the runner: `before_run`, `after_run`, and before and after epochs and iterations of train and val.

    `before_epoch`, `after_epoch`, `before_iter` and `after_iter` stand for train and val together. Besides MMCV's sites those of
    Hookline that it lacks may be used: `cleanup`, `on_exception`, `before_save_checkpoint`, ….
    """

    stages = ("before_run", "before_train_epoch", "before_train_iter", "after_train_iter", "after_train_epoch",
              "before_val_epoch", "before_val_iter", "after_val_iter", "after_val_epoch", "after_run")  # fmt: skip
    extra_sites: ClassVar[tuple[str, ...]] = ("before_iter", "after_iter")

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

    def every_n_epochs(self, runner: Any, n: int) -> bool:  # type: ignore[override]
        return n > 0 and (runner.epoch + 1) % n == 0

    def every_n_inner_iters(self, runner: Any, n: int) -> bool:
        return n > 0 and (runner.inner_iter + 1) % n == 0

    def every_n_iters(self, runner: Any, n: int) -> bool:  # type: ignore[override]
        return n > 0 and (runner.iter + 1) % n == 0

    def end_of_epoch(self, runner: Any) -> bool:
        return bool(runner.inner_iter + 1 == len(runner.data_loader))

    def is_last_epoch(self, runner: Any) -> bool:
        return bool(runner.epoch + 1 == runner._max_epochs)

    def is_last_iter(self, runner: Any) -> bool:
        return bool(runner.iter + 1 == runner._max_iters)

    def get_triggered_stages(self) -> list[str]:
        """The stages at which this hook does something, in the order of a run."""
        return [stage for stage in Hook.stages if self.site_method(stage) is not None]

    def site_method(self, site: str) -> Callable[..., Any] | None:
        if site not in SITES:
            method = super().site_method(site)
            return _given_the_runner(method) if method is not None and site in self.extra_sites else method
        if not (self._has_own(site) or (site in FANS_IN and self._has_own(FANS_IN[site]))):
            return None
        return _given_the_runner(getattr(self, site))

    def _has_own(self, name: str) -> bool:
        return name in vars(self) or getattr(type(self), name, None) is not getattr(Hook, name)


def _given_the_runner(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, called with the runner whatever it calls its argument."""
    if list(inspect.signature(method).parameters) == ["runner"]:
        return method

    def call(*args: Any) -> Any:
        return method(*args)

    call.__name__ = getattr(method, "__name__", "call")
    return call
