"""A small schedule-free SGD with the modes of the package `schedulefree`."""

from __future__ import annotations

from typing import Any

import torch


class ScheduleFreeSGD(torch.optim.Optimizer):
    """Steps `z`, averages it in `x`, and computes gradients at `y` between the two.

    The weights are `y` in training mode and `x` in evaluation mode. A step in evaluation mode is
    an error.
    """

    def __init__(self, params: Any, lr: float = 0.1, beta: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "beta": beta, "k": 0, "train_mode": False})

    @torch.no_grad()
    def eval(self) -> None:
        self._switch(False)

    @torch.no_grad()
    def train(self) -> None:
        self._switch(True)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            if not group["train_mode"]:
                raise RuntimeError("the optimizer is not in training mode")
            group["k"] += 1
            share = 1 / group["k"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if "z" not in state:
                    state["z"] = parameter.clone()
                parameter.lerp_(state["z"], share)
                parameter.add_(
                    parameter.grad, alpha=group["lr"] * (group["beta"] * (1 - share) - 1)
                )
                state["z"].sub_(parameter.grad, alpha=group["lr"])

    def _switch(self, training: bool) -> None:
        for group in self.param_groups:
            if group["train_mode"] == training:
                continue
            group["train_mode"] = training
            weight = 1 - group["beta"] if training else 1 - 1 / group["beta"]
            for parameter in group["params"]:
                if "z" in self.state[parameter]:
                    parameter.lerp_(self.state[parameter]["z"], weight)
