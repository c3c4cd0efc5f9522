"""Capture and restore the state of a run: everything that the rest of the run depends on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hookline.checkpoint.parts import (
    as_tensor,
    collect_states,
    load_states,
    pack,
    unpack,
    versions,
)
from hookline.checkpoint.resume_diff import apply_and_log_changes
from hookline.checkpoint.weights import load_weights
from hookline.rng import rng_state, seed_everything
from hookline.secrets import mask_secrets

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

COUNTERS = ("epoch", "iter", "inner_iter", "optimizer_steps")


def capture(runner: BaseRunner, *, all_ranks: bool = True) -> dict[str, Any]:
    """Return the state of a run. Its tensors are the live ones: copy them before training continues.

    Args:
        runner: The run.
        all_ranks: Include the random numbers, events and loader position of every rank; all of
            them must call this.
    """
    checkpoint: dict[str, Any] = {
        "meta": {
            **{name: getattr(runner, name) for name in COUNTERS},
            "time": time.time(),
            "versions": versions(),
            "config": mask_secrets(runner.config),
            "world_size": runner.world.size,
            "seed": runner.seed,
            "hyperparameters": runner.checkpointer.initial_hyperparameters,
            "metrics": dict(runner.metrics),
            "best": runner.best.state_dict(),
        },
        "state_dict": dict(runner.model.state_dict()),
        "hooks": {hook.name: state for hook in runner.hooks if (state := hook.state_dict())},
        "rng": rng_state(),
        "events": runner.events.state_dict(),
    }
    if runner.optimizer is not None:
        checkpoint["optimizer"] = collect_states(runner.optimizer)
    if runner.scheduler is not None:
        checkpoint["scheduler"] = collect_states(runner.scheduler)
    data = runner.loop.data
    loader = data.state(runner.train_loader, runner.inner_iter)
    if loader is not None:
        checkpoint["loader"] = loader
    if all_ranks and runner.world.size > 1:
        own = {"rng": checkpoint["rng"], "events": checkpoint["events"]}
        if loader is not None and not data.of(runner.train_loader).is_shared:
            own["loader"] = loader
        checkpoint["by_rank"] = [as_tensor(state) for state in runner.world.gather(pack(own))]
    return checkpoint


def select_rank_state(runner: BaseRunner, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint with this rank's random numbers, events and data position.

    A rank that did not exist when the checkpoint was written gets new random numbers.
    """
    rank = runner.world.rank
    states = checkpoint.get("by_rank", [])
    if rank == 0:
        return checkpoint
    if rank < len(states):
        return {**checkpoint, **unpack(states[rank])}
    seed_everything((runner.seed or 0) + 1_000_003 * rank + checkpoint["meta"]["iter"])
    return {**checkpoint, "rng": rng_state()}


def restore(runner: BaseRunner, checkpoint: Mapping[str, Any]) -> None:
    """Put a checkpoint's state into the runner's objects; a misfit is raised before any change.

    Random numbers and hooks' state are restored again by `Loop` right before the first batch,
    because the sites that run in between may change them.
    """
    meta = checkpoint["meta"]
    load_weights(runner.model, checkpoint)
    for name in ("optimizer", "scheduler"):
        target = getattr(runner, name)
        if target is not None and name in checkpoint:
            load_states(target, checkpoint[name])
    now = runner.checkpointer.initial_hyperparameters
    apply_and_log_changes(meta, runner.optimizer, now, runner.config, runner.logger)
    for name in COUNTERS:
        setattr(runner, name, meta.get(name, 0))
    _restore_position(runner, checkpoint.get("loader"), meta.get("world_size"))
    runner.metrics.update(meta.get("metrics", {}))
    runner.best.load_state_dict(meta.get("best", {}))
    runner.events.load_state_dict(checkpoint.get("events", {}))
    restore_hooks(runner, checkpoint)
    known = {hook.name for hook in runner.hooks}
    unknown = [name for name in checkpoint.get("hooks", {}) if name not in known]
    if unknown:
        names = ", ".join(unknown)
        runner.logger.warning(
            "the checkpoint has state of hooks that are not registered: %s", names
        )


def _restore_position(runner: BaseRunner, state: Any, world_size: int | None) -> None:
    loader = runner.train_loader
    data = runner.loop.data
    if runner.loop.owns_data:
        if world_size not in (None, runner.world.size):
            state = data.divide(loader, state, world_size, runner.world.size)
        runner.inner_iter = data.restore(loader, state, runner.epoch, runner.inner_iter)
    if data.batches_to_reread:
        runner.logger.warning(
            "%s keeps no position: %d batches of this epoch are read again and skipped",
            type(loader).__name__, data.batches_to_reread,
        )  # fmt: skip
    runner.loop.update_length()


def restore_hooks(runner: Any, checkpoint: Mapping[str, Any]) -> None:
    """Give each hook its state from a checkpoint."""
    states = checkpoint.get("hooks", {})
    for hook in runner.hooks:
        if hook.name in states:
            hook.load_state_dict(states[hook.name])


@contextmanager
def counters_from(runner: BaseRunner, checkpoint: Mapping[str, Any] | None) -> Iterator[None]:
    """Use the checkpoint's counters while its weights are evaluated.

    After whole epochs the last one is not counted yet, as in the training's own validation.
    """
    before = {name: getattr(runner, name) for name in COUNTERS}
    best = runner.best.state_dict()
    meta = (checkpoint or {}).get("meta")
    if isinstance(meta, Mapping):
        for name in COUNTERS:
            setattr(runner, name, meta.get(name, before[name]))
    if runner.epoch and not runner.inner_iter:
        runner.epoch -= 1
        runner.inner_iter = runner.epoch_length or 1
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(runner, name, value)
        if checkpoint is not None:  # the best of other weights is not this run's
            runner.best.load_state_dict(best)
