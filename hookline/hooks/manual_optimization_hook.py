"""The owner of `optimize` for models that step their optimizers themselves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import HooklineError
from hookline.optim.groups import by_name
from hookline.optim.step_hooks import follow_steps, warn_about_after_backward
from hookline.optim.sync import average_gradients


@HOOKS.register()
@dataclass
class ManualOptimizationHook(BaseHook):
    """Leave backward and the optimizer steps to the model's `train_step(batch, optimizer)`.

    GANs and other unusual orders of steps need it. An iteration in which an optimizer steps, once
    or several times, counts as one optimizer step, and is followed by `after_optimizer_step`. With
    `after_backward` is not called: a warning names hooks that need it. With several ranks, the
    gradients of an optimizer are averaged over them just before its step. Runs with several
    optimizers have this hook automatically if the model's `train_step` takes them.

    Example:
        ```yaml
        hooks:
          - {type: ManualOptimizationHook}
        ```
    """

    priority = Priority.ABOVE_NORMAL

    def __post_init__(self) -> None:
        self._has_stepped = False
        self._handles = ExitStack()

    def before_run(self, runner: BaseRunner) -> None:
        if isinstance(runner.optimizer, Mapping) and not hasattr(runner.model, "train_step"):
            raise HooklineError(
                f"the optimizers of {type(runner.model).__name__} are never stepped: give it a "
                "train_step(batch, optimizer) that does, or remove ManualOptimizationHook",
                component=self.name,
            )
        runner.parallel.steps_itself = True

    def before_train(self, runner: BaseRunner) -> None:
        for optimizer in by_name(runner.optimizer).values():
            average = None
            if runner.parallel.averages_at_step:
                average = partial(average_gradients, optimizer)
            self._handles.enter_context(follow_steps(optimizer, self._note_step, average))
        warn_about_after_backward(runner)

    def optimize(self, runner: BaseRunner) -> None:
        if not self._has_stepped:
            return
        self._has_stepped = False
        runner.optimizer_steps += 1
        for call in runner.sites.after_optimizer_step:
            call(runner)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        never_stepped = runner.optimizer is not None and runner.optimizer_steps == 0
        if never_stepped and runner.epoch == 0 and runner.is_main:
            runner.logger.warning(
                "%s: no optimizer has stepped in the first epoch, so the weights may not have "
                "changed: step it in the model's train_step(batch, optimizer)",
                self.name,
            )

    def cleanup(self, runner: BaseRunner) -> None:
        self._handles.close()

    def _note_step(self) -> None:
        self._has_stepped = True
