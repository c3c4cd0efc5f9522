"""Call functions around the steps of an optimizer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

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


def warn_about_after_backward(runner: Any) -> None:
    """Warn about hooks that wait for `after_backward` in a run that never calls it."""
    names = [
        hook.name for hook in runner.sites.hooks["after_backward"] if hook.needs_after_backward
    ]
    if names and runner.is_main:
        runner.logger.warning(
            "after_backward is never called, because this run steps its optimizers itself: %s %s "
            "it",
            ", ".join(names),
            "has" if len(names) == 1 else "have",
        )
