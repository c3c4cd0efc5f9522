"""Pet's hooks in a Hookline run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.compat.pet.lib.utils.events import EventStorage
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError
from hookline.tracking import put_losses

MOMENTS = ("before_train", "before_step", "after_step", "after_train")


class PetHooks(BaseHook):
    """Call Pet's hooks, in the order of the list, at the moments of a Hookline run.

    They get `storage`, whose `iter` is the run's and which records into its events, and in a run by epochs `epoch` (from 1),
    `max_epoch` and `max_epochs`; what a method does not take is left out. The losses of the step are in the storage.
    Schedulers of hooks, and the state of those that have `state_dict`, are kept in checkpoints.
    """

    priority = Priority.LOW

    def __init__(self, hooks: Iterable[Any]) -> None:
        self.hooks = list(hooks)
        for hook in self.hooks:
            if not any(callable(getattr(hook, moment, None)) for moment in MOMENTS):
                raise ConfigError(f"PetHooks: {hook!r} has none of {', '.join(MOMENTS)}")

    def before_train(self, runner: BaseRunner) -> None:
        self.storage = EventStorage(runner.iter, events_of_a_run=runner.events)
        self._closed = False
        self._call("before_train", {})

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.storage.iter, self.storage.epoch = runner.iter, runner.epoch
        self._call("before_step", {"storage": self.storage})

    def after_train_iter(self, runner: BaseRunner) -> None:
        put_losses(runner)
        self.storage.put_scalar("total_loss", runner.outputs["loss"].detach())
        progress: dict[str, Any] = {}
        if runner.iter_limit is None:
            progress = {"epoch": runner.epoch + 1, "max_epoch": runner.max_epochs, "max_epochs": runner.max_epochs}
        self._call("after_step", {"storage": self.storage, **progress})

    def after_train(self, runner: BaseRunner) -> None:
        self._finish()

    def cleanup(self, runner: BaseRunner) -> None:
        self._finish()  # as Pet's own loop does in its `finally`

    def state_dict(self) -> dict[str, Any]:
        return {str(index): part.state_dict() for index, part in self._stateful().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for index, part in self._stateful().items():
            if str(index) in state:
                part.load_state_dict(state[str(index)])

    def _finish(self) -> None:
        if not getattr(self, "_closed", True):
            self._closed = True
            self._call("after_train", {"storage": self.storage})

    def _call(self, moment: str, values: dict[str, Any]) -> None:
        with self.storage:
            for hook in self.hooks:
                method = getattr(hook, moment, None)
                if method is not None:
                    method(**_accepted(method, values))

    def _stateful(self) -> dict[int, Any]:
        """What of each hook has a state: the hook itself, or its scheduler."""
        parts = {index: hook if hasattr(hook, "state_dict") else getattr(hook, "scheduler", None) for index, hook in enumerate(self.hooks)}
        return {index: part for index, part in parts.items() if hasattr(part, "state_dict")}


def _accepted(method: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return values
    return {name: value for name, value in values.items() if name in parameters}
