"""Convert checkpoints of MMEngine and MMCV to Hookline's layout."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import torch

from hookline.checkpoint import CheckpointError
from hookline.rng import restore_rng, rng_state, seed_everything

PREFIX = "module."
# Only a runner of hookline.compat.mmengine can resume with these parts.
KEPT = ("message_hub", "param_schedulers")


def to_hookline(checkpoint: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a checkpoint in Hookline's layout.

    Args:
        checkpoint: The result of `unpickle.load` for a file of MMEngine or MMCV.
        name: The name of the file, for the CheckpointError if it is not a checkpoint.
    """
    if "state_dict" not in checkpoint:
        checkpoint = {"state_dict": _bare_weights(checkpoint, name)}
    meta = dict(checkpoint.get("meta") or {})
    weights, average = split_average(checkpoint)
    optimizer = checkpoint.get("optimizer")
    result: dict[str, Any] = {
        "meta": _convert_meta(meta, optimizer),
        "state_dict": weights,
        "hooks": {},
        "rng": checkpoint.get("rng") or fresh_rng(meta.get("seed")),
        "events": {},
    }
    for key in KEPT:
        if key in checkpoint:
            result[key] = checkpoint[key]
    if average is not None:
        result["ema_state_dict"] = average
    if optimizer is not None:
        result["optimizer"] = _convert_optimizer(optimizer)
    return result


def split_average(checkpoint: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the weights for further training, and their average if there is one.

    MMEngine's EMAHook writes the average to `state_dict`, and the weights to `ema_state_dict`, with
    the prefix `module.`. MMCV's EMAHook exchanges both before an epoch is saved: the weights are in
    buffers `ema_…` of the model.
    """
    weights = dict(checkpoint["state_dict"])
    other = checkpoint.get("ema_state_dict")
    if other is None:
        return _split_mmcv_average(weights)
    if any(key.startswith(PREFIX) for key in other):
        raw = {key: other.get(PREFIX + key, value) for key, value in weights.items()}
        return raw, weights
    return weights, dict(other)


def fresh_rng(seed: int | None) -> dict[str, Any]:
    """Return the random state of a seed, for a file without one; the current state is kept."""
    before = rng_state()
    try:
        if seed is None:
            seed = random.randrange(2**31)
        seed_everything(int(seed))
        return rng_state()
    finally:
        restore_rng(before)


def _bare_weights(checkpoint: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the content of a file that holds nothing but weights."""
    is_bare = all(isinstance(value, torch.Tensor) for value in checkpoint.values())
    if not checkpoint or not is_bare:
        message = "has no 'state_dict', so it is not a checkpoint of MMEngine or MMCV"
        raise CheckpointError(message, file=name)
    return dict(checkpoint)


def _convert_meta(meta: dict[str, Any], optimizer: Any) -> dict[str, Any]:
    version = meta.get("mmengine_version") or meta.get("mmcv_version") or "unknown"
    has_several_optimizers = optimizer is not None and "param_groups" not in optimizer
    return {
        "epoch": int(meta.get("epoch") or 0),
        "iter": int(meta.get("iter") or 0),
        "inner_iter": int(meta.get("inner_iter") or 0),
        "optimizer_steps": int(meta.get("iter") or 0),
        "time": 0.0,
        "versions": {"imported_from": str(version)},
        "config": {},
        "world_size": 1,
        "seed": meta.get("seed"),
        "hyperparameters": {} if has_several_optimizers else [],
        "metrics": {},
        "best": {},
        "original": meta,
    }


def _split_mmcv_average(
    state_dict: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    buffers = {key for key in state_dict if key.startswith("ema_")}
    average = {key: value for key, value in state_dict.items() if key not in buffers}
    names = {f"ema_{key.replace('.', '_')}": key for key in average}
    if not buffers or not buffers <= set(names):
        return state_dict, None
    weights = dict(average)
    for buffer in buffers:
        weights[names[buffer]] = state_dict[buffer]
    return weights, average


def _convert_optimizer(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of torch's optimizer without that of its wrapper, by name if several."""
    if "param_groups" not in state:
        return {name: _convert_optimizer(part) for name, part in state.items()}
    return {key: state[key] for key in ("state", "param_groups")}
