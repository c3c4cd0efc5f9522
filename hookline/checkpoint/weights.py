"""Load weights of a checkpoint into a model, and compare their names and shapes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.trainable import FrozenBase, is_partial
from hookline.errors import HooklineError

MAX_LISTED = 6


def load_weights(
    model: torch.nn.Module,
    checkpoint: Mapping[str, Any],
    strict: bool = True,
    logger: logging.Logger | None = None,
    base: FrozenBase | None = None,
) -> None:
    """Load the weights of a checkpoint, or of a plain state dict.

    A checkpoint of the trained part leaves the base of the model unchanged.

    Args:
        model: The model.
        checkpoint: The checkpoint or state dict.
        strict: Whether all weights must fit.
        logger: Logs the weights that are skipped.
        base: The frozen base of a run's model, which learns which weights are trained.

    Raises:
        CheckpointError: If that base differs from the one of the checkpoint and `strict` is set.
        HooklineError: If a weight does not fit and `strict` is set. Otherwise such weights are
            skipped and logged.
    """
    weights = checkpoint.get("state_dict", checkpoint)
    if not isinstance(weights, Mapping):
        raise HooklineError(f"the checkpoint's weights are a {type(weights).__name__}, not a dict")
    own = model.state_dict()
    if is_partial(checkpoint):
        own = {key: value for key, value in own.items() if key in weights}
    missing, unexpected = _compare(own, weights)
    if missing or unexpected:
        parts = [_listed("missing", missing), _listed("not in the model", unexpected)]
        text = "; ".join(part for part in parts if part)
        if strict:
            raise HooklineError(f"the checkpoint does not fit the model: {text}")
        if logger is not None:
            logger.warning("skipped weights that do not fit: %s", text)
        weights = {
            key: value
            for key, value in weights.items()
            if key in own and _shape(value) == _shape(own[key])
        }
    if is_partial(checkpoint):
        _check_base(base or FrozenBase(), model, checkpoint, strict, logger)
        strict = False
    model.load_state_dict(weights, strict=strict)


def lacks_base(checkpoint: Mapping[str, Any] | None) -> bool:
    """Return whether a resume needs weights beside those of the checkpoint, if there is one."""
    return checkpoint is None or is_partial(checkpoint)


def _check_base(
    base: FrozenBase,
    model: torch.nn.Module,
    checkpoint: Mapping[str, Any],
    strict: bool,
    logger: logging.Logger | None,
) -> None:
    try:
        base.check(model, checkpoint)
    except CheckpointError as error:
        if strict:
            raise
        if logger is not None:
            logger.warning("loaded all the same: %s", error)


def _compare(own: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    missing = [key for key in own if key not in given]
    unexpected = [key for key in given if key not in own]
    for key, value in own.items():
        if key in given and isinstance(value, torch.Tensor) and _shape(value) != _shape(given[key]):
            shapes = f"of shape {tuple(value.shape)} (it has {_shape(given[key])})"
            missing.append(f"{key} {shapes}")
    return missing, unexpected


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None for anything else."""
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def _listed(label: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return f"{label}: {', '.join(names[:MAX_LISTED])}{more}"
