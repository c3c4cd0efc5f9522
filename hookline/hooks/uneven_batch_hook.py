"""Weight the last batch of an epoch when ranks have uneven shares of it."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.batches import stated_count
from hookline.dist.gather import batch_share
from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority


@HOOKS.register()
@dataclass
class UnevenBatchHook(BaseHook):
    """Weight the loss of an epoch's last batch by this rank's share of the samples.

    Gradients are averaged over ranks as if all ranks had the same number of samples. With the
    weight, every sample counts equally. Distributed runs have this hook automatically. A model that
    states `num_tokens` or `num_samples` in its outputs is weighted by these, in every batch, and
    does not need this hook.

    Example:
        ```yaml
        hooks:
          - {type: UnevenBatchHook}
        ```
    """

    priority = Priority.LOWEST  # First in after_forward: other hooks see the weighted loss.

    def after_forward(self, runner: BaseRunner) -> None:
        if stated_count(runner.outputs) is not None:
            return  # The owner of `optimize` weights the loss.
        weight = batch_share(runner)
        if weight != 1.0:
            runner.outputs["loss"] = runner.outputs["loss"] * weight
