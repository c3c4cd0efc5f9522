"""The counters of a run: how far it is, and how long it will be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

# The counters that a checkpoint holds.
COUNTERS = ("epoch", "iter", "inner_iter", "optimizer_steps")


class Counters(Protocol):
    """The counters of a runner; `Runner` describes them."""

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
    """Set the counters to the values of a checkpoint."""
    for name in COUNTERS:
        setattr(runner, name, values.get(name, 0))


@contextmanager
def counting_from(runner: Counters, meta: Any) -> Iterator[None]:
    """Use a checkpoint's counters while its weights are evaluated.

    At the end of an epoch that epoch is not counted yet, as in a validation during training.
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
    """Compute `max_iters` from `max_epochs`, or vice versa.

    If the batch size changed on resume, `iter` is not the number of batches before this position.
    The difference, `ahead`, is part of the length.
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
