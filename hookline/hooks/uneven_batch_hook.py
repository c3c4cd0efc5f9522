"""Weight the last batch of an epoch when ranks have uneven shares of it."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.dist.gather import batch_share
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority


@HOOKS.register()
@dataclass
class UnevenBatchHook(BaseHook):
    """Weight the loss of an epoch's last batch by this rank's share of the samples.

    Gradients are averaged over ranks as if all ranks had the same number of samples. With the
    weight, every sample counts equally. Distributed runs have this hook automatically.

    Example:
        ```yaml
        hooks:
          - {type: UnevenBatchHook}
        ```
    """

    priority = Priority.LOWEST  # First in after_forward: other hooks see the weighted loss.

    def after_forward(self, runner: BaseRunner) -> None:
        weight = batch_share(runner)
        if weight != 1.0:
            runner.outputs["loss"] = runner.outputs["loss"] * weight
