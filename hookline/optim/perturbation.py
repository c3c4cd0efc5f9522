"""Move weights along their gradients for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.nn.utils import get_total_norm

SMALLEST_NORM = 1e-12  # keeps a gradient of 0 from dividing by 0


@contextmanager
def perturbed(parameters: Sequence[torch.Tensor], distance: float) -> Iterator[None]:
    """Move parameters along their gradients, by a distance in all; restore them at the end."""
    moved = [each for each in parameters if each.grad is not None]
    values = [each.detach().clone() for each in moved]
    with torch.no_grad():
        gradients = [each.grad for each in moved if each.grad is not None]
        scale = distance / (get_total_norm(gradients) + SMALLEST_NORM)
        for parameter, gradient in zip(moved, gradients, strict=True):
            parameter.add_(gradient * scale)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(moved, values, strict=True):
                parameter.copy_(value)
