"""Find losses that are not finite or that spike, without waiting for a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch

MIN_LOSSES = 10  # losses in the window before one of them can be a spike


class IterationLosses(NamedTuple):
    """The losses of all ranks in one iteration."""

    iter: int
    epoch: int
    batch: int
    losses: Any  # a tensor; a list as soon as the values are known


class BadLoss(NamedTuple):
    """A loss that is not finite or a spike."""

    rank: int
    loss: float
    why: str


class LossReader:
    """A reader of losses. Those of a GPU come one iteration late: training never waits."""

    def __init__(self) -> None:
        self._pending: tuple[IterationLosses, Any] | None = None

    def read(self, iteration: IterationLosses) -> IterationLosses | None:
        """Return the newest iteration whose losses are known, if there is one."""
        if iteration.losses.device.type == "cpu":
            return iteration._replace(losses=iteration.losses.tolist())
        before = self._pending
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copy = iteration.losses.to("cpu", non_blocking=True)
        event.record()
        self._pending = iteration._replace(losses=copy), event
        if before is None:
            return None
        known, is_copied = before
        is_copied.synchronize()
        return known._replace(losses=known.losses.tolist())

    def discard(self) -> None:
        """Discard the losses that are not known yet."""
        self._pending = None


def find_bad_loss(
    losses: Sequence[float], recent: Sequence[float], spike: float | None
) -> BadLoss | None:
    """Return the first loss that is not finite, or else the largest spike, if there is one.

    Args:
        losses: The losses of all ranks.
        recent: Earlier losses, each the mean over all ranks.
        spike: The multiple of their mean above which a loss is a spike; None ignores spikes.
    """
    for rank, loss in enumerate(losses):
        if not math.isfinite(loss):
            return BadLoss(rank, loss, "not finite")
    if spike is None or len(recent) < MIN_LOSSES:
        return None
    limit = spike * fmean(recent)
    worst = max(losses)
    if worst <= limit:
        return None
    return BadLoss(losses.index(worst), worst, f"a spike, above {limit:.6g}")
