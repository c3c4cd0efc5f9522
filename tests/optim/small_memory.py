"""A model that runs out of memory, in the forward or the backward pass, above a batch size."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Limited(torch.autograd.Function):
    """The identity, which runs out of memory in the backward pass of more samples than a limit."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, limit: int) -> torch.Tensor:
        ctx.limit = limit
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        if len(gradient) > ctx.limit:
            raise torch.OutOfMemoryError("backward")
        return gradient, None


class Small(nn.Module):
    """A model for at most `limit` samples at a time; random numbers are drawn before it fails."""

    def __init__(self, limit: int = 10**6, backward_limit: int = 10**6) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 8).double(), nn.Linear(8, 3).double()
        self.limit, self.backward_limit = limit, backward_limit
        self.eval_limit = 10**6

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        torch.rand(1)
        limit = self.limit if self.training else self.eval_limit
        if len(inputs) > limit:
            raise torch.OutOfMemoryError("forward")
        hidden = Limited.apply(self.first(inputs).tanh(), self.backward_limit)
        return self.last(hidden)


def small_batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return batches of 37 samples in float64."""
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.randn(37, 6, dtype=torch.float64, generator=generator),
            torch.randint(3, (37,), generator=generator),
        )
        for _ in range(count)
    ]
