"""The counters of a run: its position and its length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

COUNTERS = ("epoch", "iter", "inner_iter", "optimizer_steps")  # those in a checkpoint


class Counters(Protocol):
    """The attributes of a runner that count."""

    iter: int
    epoch: int
    inner_iter: int
    batch_idx: int
    optimizer_steps: int
    epoch_length: int | None
    max_epochs: int | None
    max_iters: int | None


def get_counters(runner: Counters) -> dict[str, int]:
    """Return the counters that a checkpoint holds."""
    return {name: getattr(runner, name) for name in COUNTERS}


def set_counters(runner: Counters, values: Mapping[str, Any]) -> None:
    """Continue to count from the values of a checkpoint."""
    for name in COUNTERS:
        setattr(runner, name, values.get(name, 0))


@contextmanager
def counting_from(runner: Counters, meta: Any) -> Iterator[None]:
    """Use a checkpoint's counters while its weights are evaluated.

    After whole epochs the last one is not counted yet, as in the training's own validation.
    """
    before = get_counters(runner)
    if isinstance(meta, Mapping):
        known = {name: meta[name] for name in COUNTERS if type(meta.get(name)) is int}
        set_counters(runner, {**before, **known})
    if runner.epoch and not runner.inner_iter:
        runner.epoch -= 1
        runner.inner_iter = runner.epoch_length or 1
    try:
        yield
    finally:
        set_counters(runner, before)


def complete_length(runner: Counters, iter_limit: int | None) -> None:
    """Compute the length in iterations from that in epochs, or the other way round.

    A run resumed with another batch size is ahead of its position by some iterations.
    """
    if not runner.epoch_length:
        return
    ahead = runner.iter - runner.epoch * runner.epoch_length - runner.inner_iter
    if iter_limit is not None:
        runner.max_epochs = -(-(iter_limit - ahead) // runner.epoch_length)
    elif runner.max_epochs is not None:
        runner.max_iters = runner.max_epochs * runner.epoch_length + ahead


def describe_position(runner: Counters, is_in_iteration: bool) -> str:
    """Return `epoch 2, iteration 41`, or `epoch 2, after iteration 40` between iterations."""
    if is_in_iteration:
        return f"epoch {runner.epoch + 1}, iteration {runner.iter + 1}"
    if not runner.iter:
        return ""
    epoch = f"epoch {runner.epoch + 1}, " if runner.inner_iter else ""
    return f"{epoch}after iteration {runner.iter}"
