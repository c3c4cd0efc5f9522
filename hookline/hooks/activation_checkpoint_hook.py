"""Recompute activations in the backward pass to save memory."""

from __future__ import annotations

from dataclasses import dataclass

from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointWrapper,
    checkpoint_wrapper,
)

from hookline.dist.modules import select_modules
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority


@HOOKS.register()
@dataclass
class ActivationCheckpointHook(BaseHook):
    """Recompute the activations of some modules in the backward pass, to save memory.

    Gradients, random numbers and the names of the weights in checkpoints stay the same.

    Args:
        modules: Class names, or patterns on the names of modules, such as `encoder.layers.*`.

    Example:
        ```yaml
        hooks:
          - {type: ActivationCheckpointHook, modules: [Linear]}
        ```
    """

    modules: str | list[str]

    priority = Priority.HIGHEST  # Before hooks that look at the modules of the model.

    def before_run(self, runner: BaseRunner) -> None:
        if any(isinstance(module, CheckpointWrapper) for module in runner.model.modules()):
            return  # wrapped by an earlier run of this runner
        found = select_modules(self.modules, runner.model, "modules", self.name)
        for name, module in reversed(found.items()):  # inner modules first
            runner.model.set_submodule(name, checkpoint_wrapper(module))
