"""The base of MMEngine's hooks, on top of Hookline's."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, ClassVar

from hookline.engine import BaseHook
from hookline.engine.sites import SITE_NAMES

MODES = ("train", "val", "test")
DATA_BATCH = Any

# What a method is given besides the runner, and where a runner of Hookline's own has it.
ARGUMENTS = {
    **{f"before_{mode}_iter": {"batch_idx": "batch_idx", "data_batch": "batch"} for mode in MODES},
    **{f"after_{mode}_iter": {"batch_idx": "batch_idx", "data_batch": "batch", "outputs": "outputs"} for mode in MODES},
    **{f"after_{mode}_epoch": {"metrics": "metrics"} for mode in ("val", "test")},
    "before_save_checkpoint": {"checkpoint": "checkpoint"},
    "after_load_checkpoint": {"checkpoint": "checkpoint"},
}
FAN_IN = {f"{when}_{mode}_{unit}": f"_{when}_{unit}" for when in ("before", "after") for mode in MODES for unit in ("epoch", "iter")}


class Hook(BaseHook):
    """Methods named after the 22 stages; `_before_epoch`, `_after_epoch`, `_before_iter` and `_after_iter` serve all three modes.

    It runs in a runner of Hookline's own as well, where the arguments are the same and the order is that runner's.
    """

    priority = "NORMAL"
    engine_sites: ClassVar[tuple[str, ...]] = ()  # sites of Hookline's engine that a built-in hook uses besides
    stages = (
        *("before_run", "after_load_checkpoint", "before_train", "before_train_epoch", "before_train_iter", "after_train_iter"),
        *("after_train_epoch", "before_val", "before_val_epoch", "before_val_iter", "after_val_iter", "after_val_epoch", "after_val"),
        *("before_save_checkpoint", "after_train", "before_test", "before_test_epoch", "before_test_iter", "after_test_iter"),
        *("after_test_epoch", "after_test", "after_run"),
    )

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None: ...  # type: ignore[override]
    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None: ...  # type: ignore[override]

    def before_train_epoch(self, runner: Any) -> None:
        self._before_epoch(runner, mode="train")

    def before_val_epoch(self, runner: Any) -> None:
        self._before_epoch(runner, mode="val")

    def before_test_epoch(self, runner: Any) -> None:
        self._before_epoch(runner, mode="test")

    def after_train_epoch(self, runner: Any) -> None:
        self._after_epoch(runner, mode="train")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        self._after_epoch(runner, mode="val")

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        self._after_epoch(runner, mode="test")

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:  # type: ignore[override]
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="train")

    def before_val_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:  # type: ignore[override]
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="val")

    def before_test_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:  # type: ignore[override]
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="test")

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        self._after_iter(runner, batch_idx=batch_idx, data_batch=data_batch, outputs=outputs, mode="train")

    def after_val_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        self._after_iter(runner, batch_idx=batch_idx, data_batch=data_batch, outputs=outputs, mode="val")

    def after_test_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        self._after_iter(runner, batch_idx=batch_idx, data_batch=data_batch, outputs=outputs, mode="test")

    def _before_epoch(self, runner: Any, mode: str = "train") -> None: ...
    def _after_epoch(self, runner: Any, mode: str = "train") -> None: ...
    def _before_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, mode: str = "train") -> None: ...
    def _after_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None, mode: str = "train") -> None: ...

    def every_n_epochs(self, runner: Any, n: int, start: int = 0) -> bool:
        dividend = runner.epoch + 1 - start
        return n > 0 and dividend >= 0 and dividend % n == 0

    def every_n_inner_iters(self, batch_idx: int, n: int) -> bool:  # type: ignore[override]
        return n > 0 and (batch_idx + 1) % n == 0

    def every_n_train_iters(self, runner: Any, n: int, start: int = 0) -> bool:
        dividend = runner.iter + 1 - start
        return n > 0 and dividend >= 0 and dividend % n == 0

    def end_of_epoch(self, dataloader: Sized, batch_idx: int) -> bool:  # type: ignore[override]
        return batch_idx + 1 == len(dataloader)

    def is_last_train_epoch(self, runner: Any) -> bool:
        return bool(runner.epoch + 1 == runner.max_epochs)

    def is_last_train_iter(self, runner: Any) -> bool:
        return bool(runner.iter + 1 == runner.max_iters)

    def get_triggered_stages(self) -> list[str]:
        """The stages at which this hook does something."""
        return [stage for stage in Hook.stages if self._has(stage) or self._has(FAN_IN.get(stage, ""))]

    @property
    def extra_sites(self) -> tuple[str, ...]:  # type: ignore[override]
        """Methods that look like stages but are none: a custom loop may call them, as in MMEngine, and nobody else does."""
        names = (name for name in dir(type(self)) if name.startswith(("before_", "after_")) and name not in SITE_NAMES)
        return tuple(name for name in names if callable(getattr(type(self), name)))

    def site_method(self, site: str) -> Callable[..., Any] | None:
        """The method for a stage, as the engine calls it: with the runner alone."""
        if self.frequency != 1:  # here it is the user's own attribute, and not Hookline's "every so many iterations"
            self.__dict__.setdefault("should_trigger", lambda step: True)
        if site in self.engine_sites:
            return super().site_method(site)
        if site not in Hook.stages or not (self._has(site) or self._has(FAN_IN.get(site, ""))):
            return None
        return _called_with_arguments(getattr(self, site), site)

    def _has(self, name: str) -> bool:
        """Whether this hook has a method of its own, not the empty one of the base."""
        method = getattr(self, name, None)
        base = getattr(Hook, name, None)
        return callable(method) and getattr(method, "__func__", method) is not base


def _called_with_arguments(method: Callable[..., Any], site: str) -> Callable[[Any], Any]:
    names = ARGUMENTS.get(site, {})

    def call(runner: Any) -> Any:
        given = getattr(runner, "call_arguments", None)
        return method(runner, **({name: getattr(runner, place) for name, place in names.items()} if given is None else given))

    call.__name__ = site
    return call
