"""Recompute activations in the backward pass to save memory."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointWrapper,
    checkpoint_wrapper,
)

from hookline.dist.modules import select_modules
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.module_names import named_modules


@HOOKS.register()
@dataclass
class ActivationCheckpointHook(BaseHook):
    """Recompute the activations of some modules in the backward pass, to save memory.

    Gradients, random numbers and the names of the weights in checkpoints stay the same. A model of
    transformers trains without its cache of keys and values, which a second pass would fill twice.

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

    def __post_init__(self) -> None:
        self._without_cache = ExitStack()

    def before_run(self, runner: BaseRunner) -> None:
        modules = named_modules(runner.model)
        found = select_modules(self.modules, runner.model, "modules", self.name)
        for name, module in found.items():
            parent, _, attribute = name.rpartition(".")
            owner = modules.get(parent, runner.model)
            # A user, or an earlier run of this runner, may have wrapped it.
            if not isinstance(getattr(owner, attribute), CheckpointWrapper):
                setattr(owner, attribute, checkpoint_wrapper(module))

    def before_train(self, runner: BaseRunner) -> None:
        config = getattr(runner.model, "config", None)
        if getattr(config, "use_cache", False):
            self._without_cache.callback(setattr, config, "use_cache", True)
            config.use_cache = False  # type: ignore[union-attr]

    def cleanup(self, runner: BaseRunner) -> None:
        self._without_cache.close()
