"""Batches: find inputs and targets in them, count their samples, move them to a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from hookline.diagnosis import describe_kind
from hookline.errors import HooklineError
from hookline.rng import restore_rng, rng_state

INPUT_KEYS = ("inputs", "input", "x", "images", "image", "pixel_values")
COUNTS = ("num_tokens", "num_samples")  # keys of a model's outputs; the first one decides
TARGET_KEYS = ("targets", "target", "y", "labels", "label")
IGNORED = -100  # the target that does not count in losses, as in torch and transformers


def unpack(batch: Any) -> tuple[Any, Any]:
    """Return the inputs and targets of a mapping.

    Raises:
        HooklineError: If the batch is not a mapping with both.
    """
    if isinstance(batch, Mapping):
        inputs = first_of(batch, INPUT_KEYS)
        targets = first_of(batch, TARGET_KEYS)
        if inputs is not None and targets is not None:
            return inputs, targets
    raise HooklineError(
        f"cannot find inputs and targets in {describe_kind(batch)}: return (inputs, targets) or "
        "a dict with 'inputs' and 'targets', or give the model a train_step(batch)"
    )


def first_of(batch: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value of the first key that a batch has, or None."""
    for key in keys:
        if key in batch:
            return batch[key]
    return None


def count_targets(targets: Any) -> int:
    """Return the length of a batch's targets, or 1 if they have none."""
    try:
        return len(targets)
    except TypeError:
        return 1


def stated_count(outputs: Mapping[str, Any]) -> Any:
    """Return the number of terms in the mean loss if the model's outputs state it, else None."""
    for key in COUNTS:
        if outputs.get(key) is not None:
            return outputs[key]
    return None


def count_samples(outputs: Mapping[str, Any], batch: Any) -> int:
    """Return the number of samples in a batch.

    The first of these that is known counts: `num_samples` of the outputs, the length of the
    targets, the length of the first element of the batch, 1.
    """
    given = outputs.get("num_samples")
    if given is not None:
        return int(given)
    part = outputs.get("targets")
    if part is None and isinstance(batch, Mapping):
        part = next(iter(batch.values()), None)
    elif part is None and isinstance(batch, (list, tuple)):
        part = batch[0]
    elif part is None:
        part = batch
    return count_targets(part) or 1


def pick_device(device: str | torch.device) -> torch.device:
    """Return a device; `auto` is the GPU if there is one, otherwise the CPU."""
    if device != "auto":
        return torch.device(device)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def move(batch: Any, device: torch.device) -> Any:
    """Move all tensors in a batch to a device, through any nesting of containers."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: move(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(move(value, device) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(move(value, device) for value in batch)
    return batch


def open_batches(loader: Iterable[Any], device: torch.device) -> Iterator[Any]:
    """Return the batches of an evaluation, each of which is moved to a device when it is read.

    Persistent workers take a seed from the random numbers of training when they start. A resumed
    run starts them a second time, so the random numbers are restored.
    """
    if not getattr(loader, "persistent_workers", False):
        return iter(move_each(loader, device))
    before = rng_state()
    batches = iter(loader)
    restore_rng(before)
    return iter(move_each(batches, device))


def move_each(batches: Iterable[Any], device: torch.device) -> Iterable[Any]:
    """Move each batch to a device when it is read."""
    if device.type == "cpu":
        return batches
    return (move(batch, device) for batch in batches)


def named_loaders(loader: Any) -> dict[str, Any]:
    """Return loaders by name; the name of a single one is empty."""
    if loader is None:
        return {}
    return dict(loader) if isinstance(loader, Mapping) else {"": loader}
