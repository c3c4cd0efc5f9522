"""Describe values and common mistakes in error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

MAX_PARTS = 4  # elements of a container that a message describes
MAX_KEYS = 8  # keys of a mapping that a message lists

# Names of sites in other frameworks, and our site that an error message suggests instead.
FOREIGN_SITES = {
    "before_training": "before_train",
    "after_training": "after_train",
    "before_step": "before_train_iter",
    "after_step": "after_train_iter",
    "before_iter": "before_train_iter",
    "after_iter": "after_train_iter",
    "on_train_begin": "before_train",
    "on_train_start": "before_train",
    "on_train_end": "after_train",
    "on_fit_start": "before_run",
    "on_fit_end": "after_run",
    "on_epoch_begin": "before_epoch",
    "on_epoch_end": "after_epoch",
    "on_train_epoch_start": "before_train_epoch",
    "on_train_epoch_end": "after_train_epoch",
    "on_train_batch_start": "before_train_iter",
    "on_train_batch_end": "after_train_iter",
    "on_step_begin": "before_train_iter",
    "on_step_end": "after_train_iter",
    "on_after_backward": "after_backward",
    "on_validation_start": "before_val",
    "on_validation_end": "after_val",
    "on_validation_epoch_end": "after_val_epoch",
    "on_test_end": "after_test",
    "on_save_checkpoint": "before_save_checkpoint",
    "on_load_checkpoint": "after_load_checkpoint",
}


def describe_shapes(predictions: Any, targets: Any) -> str:
    """Describe predictions and targets by their shapes: `predictions [8, 10] (float32) and …`."""
    return f"predictions {_describe_side(predictions)} and targets {_describe_side(targets)}"


def describe_bad_loss(loss: Any) -> str | None:
    """Describe why a loss cannot be backpropagated; None if it can."""
    if not isinstance(loss, torch.Tensor):
        got = describe_kind(loss)
    elif loss.numel() == 1 and loss.requires_grad:
        return None
    else:
        grad = "" if loss.requires_grad else " without grad"
        got = f"a tensor {describe_part(loss)}{grad}"
    return f"the loss is {got}, and must be a tensor with one element that requires grad"


def describe_contents(value: Any) -> str:
    """Describe a value with the shapes of the tensors in it."""
    if isinstance(value, Mapping):
        head = "a dict"
        parts = [f"{key!r} {describe_part(item)}" for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        head = describe_kind(value)
        parts = [describe_part(item) for item in value]
    else:
        return describe_part(value)
    if not parts:
        return describe_kind(value)
    more = ", …" if len(parts) > MAX_PARTS else ""
    return f"{head}: {', '.join(parts[:MAX_PARTS])}{more}"


def describe_part(value: Any) -> str:
    """Describe a tensor by shape and type, anything else by its kind."""
    if isinstance(value, torch.Tensor):
        return f"{list(value.shape)} ({str(value.dtype).removeprefix('torch.')})"
    return describe_kind(value)


def describe_kind(value: Any) -> str:
    """Describe the kind of a value: `a tuple of 3`, `a dict with 'x', 'y'`, `a str`."""
    if isinstance(value, Mapping):
        keys = ", ".join(repr(key) for key in list(value)[:MAX_KEYS])
        return f"a dict with {keys or 'nothing'}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _describe_side(value: Any) -> str:
    article = "" if isinstance(value, torch.Tensor) else "that are "
    return f"{article}{describe_part(value)}"
