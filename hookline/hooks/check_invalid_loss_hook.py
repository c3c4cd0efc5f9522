"""Not training on with a loss that is none."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import InvalidLoss


@HOOKS.register()
@dataclass
class CheckInvalidLossHook(BaseHook):
    """Stop with an error when the loss is not a finite number; looked at every `interval` iterations."""

    interval: int = 50

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"CheckInvalidLossHook: interval must be at least 1, got {self.interval}")

    def after_train_iter(self, runner: BaseRunner) -> None:
        if not self.every_n_iters(runner, self.interval):
            return
        loss = runner.outputs["loss"].detach()
        if not torch.isfinite(loss).all():
            raise InvalidLoss(f"the loss is {loss.tolist()} at iteration {runner.iter + 1}")
