"""Run hooks of Pet in a Hookline run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.compat.pet.lib.utils.events import EventStorage
from hookline.engine import BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError
from hookline.hooks.bases.reports import record_losses

METHODS = ("before_train", "before_step", "after_step", "after_train")


class PetHooks(BaseHook):
    """A hook that calls hooks of Pet at the corresponding sites of a run.

    They get `storage`, which records into the run's events and has its iteration and the losses of
    the step. In a run by epochs they also get `epoch` (from 1), `max_epoch` and `max_epochs`. A
    method is only called with the arguments that it takes. A hook with `state_dict`, and the
    scheduler of a hook, is saved in checkpoints.

    Args:
        hooks: The hooks, in the order in which they are called.
    """

    priority = Priority.LOW

    def __init__(self, hooks: Iterable[Any]) -> None:
        self.hooks = list(hooks)
        for hook in self.hooks:
            if not any(callable(getattr(hook, method, None)) for method in METHODS):
                raise ConfigError(
                    f"a hook needs at least one of {', '.join(METHODS)}",
                    component="PetHooks",
                    parameter="hooks",
                    value=hook,
                )

    def before_train(self, runner: BaseRunner) -> None:
        self.storage = EventStorage(runner.iter, events_of_a_run=runner.events)
        self._finished = False
        self._call("before_train", {})

    def before_train_iter(self, runner: BaseRunner) -> None:
        self.storage.iter = runner.iter
        self.storage.epoch = runner.epoch
        self._call("before_step", {"storage": self.storage})

    def after_train_iter(self, runner: BaseRunner) -> None:
        record_losses(runner)
        self.storage.put_iteration_scalar("total_loss", runner.outputs["loss"].detach())
        arguments: dict[str, Any] = {"storage": self.storage}
        if runner.loop.iter_limit is None:
            arguments["epoch"] = runner.epoch + 1
            arguments["max_epoch"] = runner.max_epochs
            arguments["max_epochs"] = runner.max_epochs
        self._call("after_step", arguments)

    def after_train(self, runner: BaseRunner) -> None:
        self._finish()

    def cleanup(self, runner: BaseRunner) -> None:
        self._finish()  # Pet's loop calls after_train in a `finally` block

    def state_dict(self) -> dict[str, Any]:
        return {str(index): part.state_dict() for index, part in self._stateful().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for index, part in self._stateful().items():
            if str(index) in state:
                part.load_state_dict(state[str(index)])

    def _finish(self) -> None:
        if not getattr(self, "_finished", True):
            self._finished = True
            self._call("after_train", {"storage": self.storage})

    def _call(self, name: str, arguments: dict[str, Any]) -> None:
        with self.storage:
            for hook in self.hooks:
                method = getattr(hook, name, None)
                if method is not None:
                    method(**_accepted(method, arguments))

    def _stateful(self) -> dict[int, Any]:
        """Return, by the index of a hook, the object with its state: the hook or its scheduler."""
        found = {}
        for index, hook in enumerate(self.hooks):
            for part in (hook, getattr(hook, "scheduler", None)):
                if hasattr(part, "state_dict"):
                    found[index] = part
                    break
        return found


def _accepted(method: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a method takes."""
    parameters = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}
