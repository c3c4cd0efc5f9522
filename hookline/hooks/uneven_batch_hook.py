"""The last batch of an epoch, where several processes cannot share it evenly."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.engine.shares import batch_share


@HOOKS.register()
@dataclass
class UnevenBatchHook(BaseHook):
    """In a distributed run, weigh the loss of an epoch's last batch by this process's part of its samples.

    The gradients of all processes are averaged as if they had equally many; so every sample counts the same. It is there
    by itself in runs with several processes.
    """

    priority = Priority.LOWEST  # the first after the forward: everyone sees the loss that is trained on

    def after_forward(self, runner: BaseRunner) -> None:
        if (weight := batch_share(runner)) != 1.0:
            runner.outputs["loss"] = runner.outputs["loss"] * weight
