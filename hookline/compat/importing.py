"""Checkpoints of MMEngine and MMCV in Hookline's own layout, so that its runner, commands and hooks can work with them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import torch

from hookline.checkpoint import CheckpointError
from hookline.engine.capture import restore_rng, rng_state
from hookline.engine.environment import seed_everything

PREFIX = "module."
KEPT = ("message_hub", "param_schedulers")  # for a runner of hookline.compat.mmengine, which can go on with them


def to_hookline(checkpoint: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What `unpickle.load` gave of an MMEngine or MMCV file, as Hookline's checkpoints are; CheckpointError if it is none."""
    if "state_dict" not in checkpoint:
        weights = {key: value for key, value in checkpoint.items() if isinstance(value, torch.Tensor)}
        if len(weights) != len(checkpoint) or not weights:
            raise CheckpointError(f"{name}: has no 'state_dict', so it is no checkpoint of MMEngine or MMCV")
        checkpoint = {"state_dict": weights}
    meta = dict(checkpoint.get("meta") or {})
    raw, average = split_average(checkpoint)
    result: dict[str, Any] = {
        "meta": {
            **{key: int(meta.get(key) or 0) for key in ("epoch", "iter", "inner_iter")},
            "optimizer_steps": int(meta.get("iter") or 0),
            "time": 0.0,
            "versions": {"imported_from": str(meta.get("mmengine_version") or meta.get("mmcv_version") or "unknown")},
            "config": {},
            "world_size": 1,
            "seed": meta.get("seed"),
            "hyperparameters": [] if "param_groups" in checkpoint.get("optimizer", {"param_groups": []}) else {},
            "metrics": {},
            "best": {},
            "original": meta,
        },
        "state_dict": raw,
        "hooks": {},
        "rng": checkpoint.get("rng") or fresh_rng(meta.get("seed")),
        "events": {},
        **{key: checkpoint[key] for key in KEPT if key in checkpoint},
    }
    if average is not None:
        result["ema_state_dict"] = average
    if "optimizer" in checkpoint:
        result["optimizer"] = _optimizer(checkpoint["optimizer"])
    return result


def split_average(checkpoint: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The weights that training goes on with, and their average if there is one.

    MMEngine's EMAHook writes the average into `state_dict`, and the weights, with `module.` before their names, into
    `ema_state_dict`. MMCV's has exchanged them when an epoch is saved: the weights are in buffers `ema_…` of the model.
    """
    weights, other = dict(checkpoint["state_dict"]), checkpoint.get("ema_state_dict")
    if other is not None and any(key.startswith(PREFIX) for key in other):
        raw = {key: other.get(PREFIX + key, value) for key, value in weights.items()}
        return raw, weights
    buffers = {key for key in weights if key.startswith("ema_")}
    if buffers and other is None:
        names = {f"ema_{key.replace('.', '_')}": key for key in weights if key not in buffers}
        if buffers <= set(names):
            average = {key: value for key, value in weights.items() if key not in buffers}
            return {**average, **{names[key]: weights[key] for key in buffers}}, average
    return weights, None if other is None else dict(other)


def fresh_rng(seed: int | None) -> dict[str, Any]:
    """Random numbers to go on with, where a file has none: those of its seed. Ours go on as they were."""
    before = rng_state()
    try:
        seed_everything(int(seed) if seed is not None else random.randrange(2**31))
        return rng_state()
    finally:
        restore_rng(before)


def _optimizer(state: Mapping[str, Any]) -> dict[str, Any]:
    """torch's part of an optimizer wrapper's state; of several optimizers that of each."""
    if "param_groups" not in state:
        return {name: _optimizer(part) for name, part in state.items()}
    return {key: state[key] for key in ("state", "param_groups")}
