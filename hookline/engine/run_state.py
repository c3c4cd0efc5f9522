"""Capture and restore the complete state of a run, as a checkpoint holds it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookline.checkpoint import parts
from hookline.checkpoint.structure import restoring
from hookline.checkpoint.weights import load_weights
from hookline.counters import get_counters, set_counters
from hookline.optim import saved_parts
from hookline.rng import rng_state
from hookline.secrets import mask_secrets

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner


def capture(runner: BaseRunner, *, all_ranks: bool = True) -> dict[str, Any]:
    """Return the state of a run. Copy its tensors before training continues and changes them.

    With `all_ranks` it holds random numbers, events and data positions of all, and all must call.
    """
    checkpoint: dict[str, Any] = {
        "meta": {
            **get_counters(runner),
            "time": time.time(),
            "versions": parts.versions(),
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
    saved_parts.add_parts(runner, checkpoint)
    if runner.optimizer is not None:
        checkpoint["optimizer"] = parts.collect_states(runner.optimizer)
    if runner.scheduler is not None:
        checkpoint["scheduler"] = parts.collect_states(runner.scheduler)
    data = runner.loop.data
    loader = data.state(runner.train_loader, runner.inner_iter)
    if loader is not None:
        checkpoint["loader"] = loader
    if all_ranks and runner.world.size > 1:
        own = {"rng": checkpoint["rng"], "events": checkpoint["events"]}
        if loader is not None and not data.of(runner.train_loader).is_shared:
            own["loader"] = loader
        checkpoint["by_rank"] = parts.gather_states(runner.world, own)
    return checkpoint


def restore(runner: BaseRunner, checkpoint: Mapping[str, Any]) -> None:
    """Restore a run from a checkpoint. Wrong weights raise before anything is changed.

    `Loop.reapply_state` restores random numbers and hook state again before the first batch,
    because hooks that run in between may change them.
    """
    load_weights(runner.model, checkpoint, base=runner.checkpointer.frozen_base)
    saved_parts.restore_parts(runner, checkpoint)
    meta = checkpoint["meta"]
    set_counters(runner, meta)
    with restoring("loader"):
        _restore_position(runner, checkpoint.get("loader"), meta.get("world_size"))
    parts.restore_hooks(runner.hooks, checkpoint)
    parts.warn_about_unknown_hooks(runner.hooks, checkpoint, runner.logger)


def _restore_position(runner: BaseRunner, state: Any, world_size: int | None) -> None:
    loader = runner.train_loader
    data = runner.loop.data
    if runner.loop.owns_data:
        if world_size not in (None, runner.world.size):
            state = data.divide(loader, state, world_size, runner.world.size)
        runner.inner_iter = data.restore(loader, state, runner.epoch, runner.inner_iter)
    runner.loop.update_length()
