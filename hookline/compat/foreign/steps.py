"""Convert iterations to optimizer steps, which other frameworks count."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from hookline.engine import BaseRunner
from hookline.hooks import GradientCumulativeOptimizerHook

T = TypeVar("T")


def find_hook(runner: BaseRunner, kind: type[T]) -> T | None:
    """Return the first hook of a class, or None."""
    for hook in runner.hooks:
        if isinstance(hook, kind):
            return hook
    return None


def accumulation_steps(runner: BaseRunner) -> int:
    """Return the number of iterations in an optimizer step."""
    hook: Any = find_hook(runner, GradientCumulativeOptimizerHook)
    return 1 if hook is None else hook.cumulative_iters


def count_optimizer_steps(runner: BaseRunner, iters: int) -> int:
    """Return the number of optimizer steps in the first iterations of a run.

    An epoch, and the run, ends with a step, however few iterations are left for it.
    """
    accumulated = accumulation_steps(runner)
    epoch_length = runner.epoch_length or iters
    if not epoch_length:
        return 0
    epochs, rest = divmod(iters, epoch_length)
    return epochs * math.ceil(epoch_length / accumulated) + math.ceil(rest / accumulated)
