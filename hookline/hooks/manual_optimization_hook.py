"""The owner of `optimize` for models that step their optimizers themselves."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.optim.groups import by_name
from hookline.optim.step_hooks import follow_steps


@HOOKS.register()
@dataclass
class ManualOptimizationHook(BaseHook):
    """Leave backward and the optimizer steps to the model's `train_step(batch, optimizer)`.

    GANs, SAM, LBFGS and other closures need it. An iteration in which an optimizer steps, once or
    several times, counts as one optimizer step, and is followed by `after_optimizer_step`. Runs
    with several optimizers have this hook automatically.

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

    def before_train(self, runner: BaseRunner) -> None:
        for optimizer in by_name(runner.optimizer).values():
            self._handles.enter_context(follow_steps(optimizer, self._note_step))

    def optimize(self, runner: BaseRunner) -> None:
        if not self._has_stepped:
            return
        self._has_stepped = False
        runner.optimizer_steps += 1
        for call in runner.sites.after_optimizer_step:
            call(runner)

    def cleanup(self, runner: BaseRunner) -> None:
        self._handles.close()

    def _note_step(self) -> None:
        self._has_stepped = True
