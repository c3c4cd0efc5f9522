"""Call functions around the steps of an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import torch


def follow_steps(
    optimizer: torch.optim.Optimizer,
    after: Callable[[], None],
    before: Callable[[], None] | None = None,
) -> ExitStack:
    """Call functions after and before each optimizer step, until the returned stack is closed."""
    handles = ExitStack()
    handles.callback(optimizer.register_step_post_hook(lambda *_: after()).remove)
    if before is not None:
        handles.callback(optimizer.register_step_pre_hook(lambda *_: before()).remove)
    return handles
