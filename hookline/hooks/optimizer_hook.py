"""The owner of `optimize`: from the loss to changed weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority


@HOOKS.register()
@dataclass
class OptimizerHook(BaseHook):
    """Backward, clip, step, zero_grad, once an iteration.

    `grad_clip` takes the arguments of `torch.nn.utils.clip_grad_norm_` (`max_norm`, `norm_type`) or `{clip_value: …}`.
    """

    grad_clip: dict[str, Any] | None = None

    priority = Priority.ABOVE_NORMAL

    def __post_init__(self) -> None:
        clip = self.grad_clip
        if clip is not None and not ({"max_norm", "clip_value"} & set(clip)):
            raise ValueError(f"OptimizerHook: grad_clip needs 'max_norm' or 'clip_value', got {clip!r}")

    def before_train(self, runner: BaseRunner) -> None:
        if isinstance(runner.optimizer, Mapping):
            raise ValueError("OptimizerHook steps one optimizer; a model with several steps them in its own train_step")
        assert runner.optimizer is not None
        self._params = [p for group in runner.optimizer.param_groups for p in group["params"]]
        runner.optimizer.zero_grad(set_to_none=True)

    def optimize(self, runner: BaseRunner) -> None:
        optimizer: torch.optim.Optimizer = runner.optimizer  # type: ignore[assignment]
        runner.outputs["loss"].backward()
        for call in runner.sites.after_backward:
            call(runner)
        if self.grad_clip is not None:
            self._clip(runner)
        optimizer.step()
        runner.optimizer_steps += 1
        for call in runner.sites.after_optimizer_step:
            call(runner)
        optimizer.zero_grad(set_to_none=True)

    def _clip(self, runner: BaseRunner) -> None:
        assert self.grad_clip is not None
        if "clip_value" in self.grad_clip:
            torch.nn.utils.clip_grad_value_(self._params, **self.grad_clip)
        else:
            norm = torch.nn.utils.clip_grad_norm_(self._params, **self.grad_clip)
            runner.events.put_scalar("grad_norm", norm)
