"""The base class of MMEngine's hooks."""

from __future__ import annotations

from collections.abc import Callable, Sized
from inspect import Parameter, Signature
from typing import Any, ClassVar

from hookline.engine import BaseHook
from hookline.engine.sites import SITE_NAMES
from hookline.intervals import is_due

MODES = ("train", "val", "test")
RUNNER_ONLY = Signature([Parameter("runner", Parameter.POSITIONAL_OR_KEYWORD)])
DATA_BATCH = Any

# The arguments of a method after the runner, each with the attribute of Hookline's runner for it.
BATCH = {"batch_idx": "batch_idx", "data_batch": "batch"}
ARGUMENTS: dict[str, dict[str, str]] = {
    "before_save_checkpoint": {"checkpoint": "checkpoint"},
    "after_load_checkpoint": {"checkpoint": "checkpoint"},
    "after_val_epoch": {"metrics": "metrics"},
    "after_test_epoch": {"metrics": "metrics"},
}
# The method for all modes that a method of one mode calls unless it is overridden.
GENERAL_METHOD: dict[str, str] = {}
for _mode in MODES:
    ARGUMENTS[f"before_{_mode}_iter"] = BATCH
    ARGUMENTS[f"after_{_mode}_iter"] = {**BATCH, "outputs": "outputs"}
    for _when in ("before", "after"):
        for _unit in ("epoch", "iter"):
            GENERAL_METHOD[f"{_when}_{_mode}_{_unit}"] = f"_{_when}_{_unit}"


class Hook(BaseHook):
    """The base class of MMEngine's hooks, with methods named after 22 stages.

    `_before_epoch`, `_after_epoch`, `_before_iter` and `_after_iter` are called in training,
    validation and testing. Such a hook also runs in a runner of Hookline, with the same arguments,
    in that runner's order.
    """

    priority = "NORMAL"
    # Sites of Hookline's engine that a built-in hook uses in addition to the stages.
    engine_sites: ClassVar[tuple[str, ...]] = ()
    stages = (
        "before_run",
        "after_load_checkpoint",
        "before_train",
        "before_train_epoch",
        "before_train_iter",
        "after_train_iter",
        "after_train_epoch",
        "before_val",
        "before_val_epoch",
        "before_val_iter",
        "after_val_iter",
        "after_val_epoch",
        "after_val",
        "before_save_checkpoint",
        "after_train",
        "before_test",
        "before_test_epoch",
        "before_test_iter",
        "after_test_iter",
        "after_test_epoch",
        "after_test",
        "after_run",
    )

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None: ...
    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None: ...

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

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="train")

    def before_val_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="val")

    def before_test_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._before_iter(runner, batch_idx=batch_idx, data_batch=data_batch, mode="test")

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._after_iter(
            runner, batch_idx=batch_idx, data_batch=data_batch, outputs=outputs, mode="train"
        )

    def after_val_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._after_iter(
            runner, batch_idx=batch_idx, data_batch=data_batch, outputs=outputs, mode="val"
        )

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._after_iter(
            runner, batch_idx=batch_idx, data_batch=data_batch, outputs=outputs, mode="test"
        )

    def _before_epoch(self, runner: Any, mode: str = "train") -> None: ...
    def _after_epoch(self, runner: Any, mode: str = "train") -> None: ...
    def _before_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, mode: str = "train"
    ) -> None: ...
    def _after_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Any = None,
        mode: str = "train",
    ) -> None: ...

    def every_n_epochs(self, runner: Any, n: int, start: int = 0) -> bool:
        return is_due(runner.epoch + 1, n, start)

    def every_n_train_iters(self, runner: Any, n: int, start: int = 0) -> bool:
        return is_due(runner.iter + 1, n, start)

    every_n_iters = every_n_train_iters

    def every_n_inner_iters(self, batch_idx: int, n: int) -> bool:  # type: ignore[override]
        return is_due(batch_idx + 1, n)

    def end_of_epoch(self, dataloader: Sized, batch_idx: int) -> bool:  # type: ignore[override]
        return batch_idx + 1 == len(dataloader)

    def is_last_train_epoch(self, runner: Any) -> bool:
        return bool(runner.epoch + 1 == runner.max_epochs)

    def is_last_train_iter(self, runner: Any) -> bool:
        return bool(runner.iter + 1 == runner.max_iters)

    def get_triggered_stages(self) -> list[str]:
        """Return the stages at which this hook does something."""
        return [stage for stage in Hook.stages if self._handles(stage)]

    def should_trigger(self, step: int) -> bool:
        """Return True: MMEngine has no `frequency`, so it is an attribute of the subclass."""
        return True

    @property
    def extra_sites(self) -> tuple[str, ...]:  # type: ignore[override]
        """Methods named like stages that are not stages; only a custom loop calls them."""
        names = []
        for name in dir(type(self)):
            if name in SITE_NAMES or not name.startswith(("before_", "after_")):
                continue
            if callable(getattr(type(self), name)):
                names.append(name)
        return tuple(names)

    def site_method(self, site: str) -> Callable[..., Any] | None:
        """Return the method for a stage, as a function of the runner."""
        if site in self.engine_sites:
            return super().site_method(site)
        if site not in Hook.stages or not self._handles(site):
            return None
        return _with_arguments(getattr(self, site), site)

    def _handles(self, stage: str) -> bool:
        return self._overrides(stage) or self._overrides(GENERAL_METHOD.get(stage, stage))

    def _overrides(self, name: str) -> bool:
        """Return whether this hook has a method other than the empty one of the base class."""
        method = getattr(self, name, None)
        base = getattr(Hook, name, None)
        return callable(method) and getattr(method, "__func__", method) is not base


def _with_arguments(method: Callable[..., Any], site: str) -> Callable[[Any], Any]:
    attributes = ARGUMENTS.get(site, {})

    def call(runner: Any) -> Any:
        arguments = getattr(runner, "call_arguments", None)
        if arguments is None:
            arguments = {name: getattr(runner, place) for name, place in attributes.items()}
        return method(runner, **arguments)

    call.__name__ = site
    # For a note on an error: `call` is the code of all hooks, the method names one of them.
    call.__wrapped__ = getattr(method, "__func__", method)  # type: ignore[attr-defined]
    call.__signature__ = RUNNER_ONLY  # type: ignore[attr-defined]
    return call
