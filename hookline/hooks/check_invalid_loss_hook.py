"""Abort training when the loss is NaN or infinite."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import InvalidLoss, require_at_least


@HOOKS.register()
@dataclass
class CheckInvalidLossHook(BaseHook):
    """Abort training with an error when the loss is NaN or infinite.

    RollbackHook recovers from such a loss instead.

    Args:
        interval: Number of iterations between two checks. A check waits for the device.

    Example:
        ```yaml
        hooks:
          - {type: CheckInvalidLossHook, interval: 50}
        ```
    """

    interval: int = 50

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval")

    def after_train_iter(self, runner: BaseRunner) -> None:
        if not self.every_n_iters(runner, self.interval):
            return
        loss = runner.outputs["loss"].detach()
        if not torch.isfinite(loss).all():
            raise InvalidLoss(
                f"the loss of iteration {runner.iter + 1} is not finite",
                component=self.name,
                value=loss.tolist(),
                site="after_train_iter",
            )
