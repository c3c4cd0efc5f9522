"""Weights of batches, with which small batches and ranks count as parts of one large batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from hookline.batches import count_samples, stated_count
from hookline.dist import World

Number = float | torch.Tensor


def count_terms(outputs: Mapping[str, Any], batch: Any) -> float:
    """Return the number of terms in the mean loss: as the outputs state, or else of samples."""
    stated = stated_count(outputs)
    return float(count_samples(outputs, batch) if stated is None else stated)


def sum_over_ranks(count: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's count and the sum over all ranks, without waiting for a GPU."""
    own = torch.as_tensor(count, dtype=torch.float64, device=device).detach().clone()
    total = own.clone()
    dist.all_reduce(total)
    return own, total


def rank_weight(outputs: Mapping[str, Any], world: World) -> Number:
    """Return the weight of this rank's loss in the mean over ranks; 1.0 unless counts are stated.

    Ranks average their gradients as if all losses were means of equally many terms. All ranks must
    state a count, or none.
    """
    count = None if world.size == 1 else stated_count(outputs)
    if count is None:
        return 1.0
    own, total = sum_over_ranks(count, outputs["loss"].device)
    return own * world.size / total


class GroupWeights:
    """The weights of the batches in a group of iterations that share an optimizer step."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a new group."""
        self._first: Number = 0.0
        self._sum: Number = 0.0
        self.count = 0

    def add(self, own: Number, total: Number) -> Number:
        """Add a batch; return the weight of its loss.

        Args:
            own: The size of this rank's part of the batch, times the number of ranks.
            total: The size of the whole batch, the same on all ranks.
        """
        if self.count == 0:
            self._first = total
        self.count += 1
        self._sum = self._sum + total / self._first
        return own / self._first

    def normalize(self, parameters: Sequence[torch.Tensor]) -> None:
        """Divide accumulated gradients by the sum of the weights."""
        gradients = [each.grad for each in parameters if each.grad is not None]
        if isinstance(self._sum, torch.Tensor):
            for gradient in gradients:
                gradient.div_(self._sum.to(gradient.dtype))
        elif self._sum != 1.0:
            torch._foreach_mul_(gradients, 1.0 / self._sum)
