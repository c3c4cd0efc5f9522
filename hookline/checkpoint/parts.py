"""Parts of a checkpoint: states of several objects, packed states of one rank, versions."""

from __future__ import annotations

import io
import logging
import platform
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from hookline.checkpoint.formats import deserialize
from hookline.checkpoint.structure import restoring
from hookline.dist import World
from hookline.errors import HooklineError
from hookline.rng import rng_state, seed_everything
from hookline.version import __version__


def collect_states(target: Any) -> Any:
    """Return the state of one object, or of a list or mapping of them."""
    if isinstance(target, Mapping):
        return {name: collect_states(value) for name, value in target.items()}
    if isinstance(target, (list, tuple)):
        return [collect_states(value) for value in target]
    return target.state_dict()


def load_states(target: Any, state: Any) -> None:
    """Load the result of `collect_states` into the same objects."""
    if isinstance(target, Mapping):
        if set(target) != set(state):
            names = f"{sorted(state)} in the checkpoint and {sorted(target)} here"
            raise HooklineError(f"the names of the optimizers differ: {names}")
        for name, value in target.items():
            load_states(value, state[name])
    elif isinstance(target, (list, tuple)):
        for value, part in zip(target, state, strict=True):
            load_states(value, part)
    else:
        target.load_state_dict(state)


def gather_states(world: World, own: Any) -> list[torch.Tensor]:
    """Return the states of all ranks, packed into tensors; all of them must call this."""
    stream = io.BytesIO()
    torch.save(own, stream)
    packed = world.gather(stream.getvalue())
    return [torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in packed]


def select_rank_state(
    checkpoint: dict[str, Any], world: World, seed: int | None = None
) -> dict[str, Any]:
    """Return a checkpoint with this rank's random numbers, events and data position.

    A rank that did not exist when the checkpoint was written gets new random numbers.
    """
    rank = world.rank
    states = checkpoint.get("by_rank", [])
    if rank == 0:
        return checkpoint
    if rank < len(states):
        with restoring(f"by_rank[{rank}]"):
            packed = io.BytesIO(bytes(states[rank].numpy()))
            return {**checkpoint, **deserialize(packed, f"by_rank[{rank}]")}
    seed_everything((seed or 0) + 1_000_003 * rank + checkpoint["meta"]["iter"])
    return {**checkpoint, "rng": rng_state()}


def versions() -> dict[str, str]:
    """Return the versions that a checkpoint names."""
    return {
        "hookline": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def restore_hooks(hooks: Iterable[Any], checkpoint: Mapping[str, Any]) -> None:
    """Give each hook its state from a checkpoint."""
    states = checkpoint.get("hooks", {})
    for hook in hooks:
        if hook.name in states:
            with restoring("hooks", hook.name):
                hook.load_state_dict(states[hook.name])


def warn_about_unknown_hooks(
    hooks: Iterable[Any], checkpoint: Mapping[str, Any], logger: logging.Logger
) -> None:
    """Warn about state of hooks that the resumed run does not have."""
    known = {hook.name for hook in hooks}
    unknown = [name for name in checkpoint.get("hooks", {}) if name not in known]
    if unknown:
        names = ", ".join(unknown)
        logger.warning("the checkpoint has state of hooks that are not registered: %s", names)
