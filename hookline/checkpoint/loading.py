"""Load a checkpoint from a path that the user named."""

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

FILE_SUFFIXES = (".pth", ".pt", ".ckpt", ".safetensors")  # that an error suggests
MakeEmpty = Callable[[list[int], torch.dtype], Tensor]


def load_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Load a checkpoint file to the CPU.

    A file that a manifest lists is verified against its checksum. For any other file, the log warns
    that it was not verified.

    Raises:
        CheckpointError: If the file is damaged or holds more than plain data.
    """
    path = Path(path)
    if not path.is_file():
        raise _missing_file_error(path)
    for candidate in dict.fromkeys((path, path.resolve())):
        store = CheckpointStore(candidate.parent)
        if _is_listed(store, candidate.name):
            return store.load(candidate.name)
    log.warning("%s: not verified, because no manifest lists it", path)
    if path.suffix == ".safetensors":
        return {"state_dict": _load_safetensors(path)}
    with open(path, "rb") as file:
        return deserialize(file, str(path))


def load_whole(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Load a checkpoint file to the CPU, with the whole tensors of a sharded checkpoint."""
    return with_shards(load_checkpoint(path), Path(path).parent)


def with_shards(
    checkpoint: dict[str, Any], directory: Path, empty: MakeEmpty | None = None
) -> dict[str, Any]:
    """Return a checkpoint with the tensors from its shards. One that is not sharded is unchanged.

    Args:
        checkpoint: The content of a checkpoint file.
        directory: The directory of that file.
        empty: Makes the tensor to read into from a shape and a dtype. All ranks then read their
            parts together. By default this process reads whole tensors by itself.
    """
    if "shards" not in checkpoint:
        return checkpoint
    from hookline.checkpoint.shard_files import read  # half a second of imports

    rest = dict(checkpoint)
    shards = directory / check_name(rest.pop("shards"))
    if empty is None:
        return read(shards, rest, _make_whole, alone=True)
    return read(shards, rest, empty, alone=False)


def _make_whole(shape: list[int], dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def _missing_file_error(path: Path) -> CheckpointError:
    files = (other for other in path.parent.glob("*") if other.is_file())
    others = [other.name for other in files if other.suffix in FILE_SUFFIXES]
    return CheckpointError(
        "there is no such file", file=str(path), suggestion=suggest(path.name, others)
    )


def _is_listed(store: CheckpointStore, name: str) -> bool:
    """Return whether the manifest of a store lists a name."""
    try:
        return any(name in entry.names for entry in store.entries())
    except CheckpointError:  # The manifest is damaged, which is logged; the file may be intact.
        return False


def _load_safetensors(path: Path) -> dict[str, Any]:
    import safetensors.torch

    try:
        return dict(safetensors.torch.load_file(path, device="cpu"))
    except Exception as error:
        raise CheckpointError(f"cannot be read: {error}", file=str(path)) from error
