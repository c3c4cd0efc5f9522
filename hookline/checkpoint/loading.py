"""A checkpoint from a path that the user named."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.formats import deserialize
from hookline.checkpoint.names import check_name
from hookline.checkpoint.store import CheckpointStore
from hookline.errors import suggest

log = logging.getLogger(__name__)

Empty = Callable[[list[int], torch.dtype], Tensor]


def load_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a checkpoint file, on the CPU; CheckpointError if it is damaged or holds more than plain data.

    A file in a checkpoint directory is verified against its checksum; of any other the log says that it has none.
    """
    path = Path(path)
    if not path.is_file():
        near = suggest(path.name, (other.name for other in path.parent.glob("*") if other.is_file()))
        raise CheckpointError(f"{path}: there is no such file{near}")
    for place in dict.fromkeys((path, path.resolve())):
        store = CheckpointStore(place.parent)
        if _knows(store, place.name):
            return store.load(place.name)
    log.warning("%s: loaded without verification, no checksum of it is known", path)
    if path.suffix == ".safetensors":
        return {"state_dict": _load_safetensors(path)}
    with open(path, "rb") as file:
        return deserialize(file, str(path))


def load_whole(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The same, with all tensors of a checkpoint whose parts lie beside it."""
    return with_shards(load_checkpoint(path), Path(path).parent)


def with_shards(checkpoint: dict[str, Any], directory: Path, empty: Empty | None = None) -> dict[str, Any]:
    """A checkpoint with its tensors, where their parts lie in a directory; without `empty` whole, and by this process alone.

    `empty(shape, dtype)` makes what a tensor is read into; then all processes read, each its parts.
    """
    if "shards" not in checkpoint:
        return checkpoint
    from hookline.checkpoint.shard_files import read  # half a second of imports

    rest = {key: value for key, value in checkpoint.items() if key != "shards"}
    return read(directory / check_name(checkpoint["shards"]), rest, empty or _whole, alone=empty is None)


def _whole(shape: list[int], dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def _knows(store: CheckpointStore, name: str) -> bool:
    try:
        return any(name in entry.names for entry in store.entries())
    except CheckpointError:  # the manifest is damaged, and the log says so; the user's file may be good
        return False


def _load_safetensors(path: Path) -> dict[str, Any]:
    import safetensors.torch

    try:
        return dict(safetensors.torch.load_file(path, device="cpu"))
    except Exception as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
