"""Checkpoints whose tensors are spread over processes: each writes its parts, through torch.distributed.checkpoint.

A sharded checkpoint is a file like any other, in which a placeholder stands for every tensor that is spread, and a directory
beside it with their parts. The directory is complete and on disk before the file is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hookline.checkpoint.files import FileSystem, hash_stream
from hookline.checkpoint.manifest import Part

PLACEHOLDER = "sharded"  # the only key of what stands for a tensor, with its key among the shards, its shape and its type
PREFIX = "shards_"


def split(checkpoint: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A checkpoint with placeholders for the tensors that are spread over processes, and those by their place in it."""
    shards: dict[str, Tensor] = {}

    def plain(value: Any, path: str) -> Any:
        if isinstance(value, Tensor) and hasattr(value, "full_tensor"):
            shards[path] = value.detach()
            return {PLACEHOLDER: [path, list(value.shape), str(value.dtype).removeprefix("torch.")]}
        return _mapped(value, lambda item, name: plain(item, f"{path}/{name}"))

    return {key: plain(value, key) for key, value in checkpoint.items()}, shards


def join(checkpoint: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """A checkpoint with its tensors back in the place of their placeholders."""

    def whole(value: Any, name: Any) -> Any:
        found = placeholder(value)
        return _mapped(value, whole) if found is None else tensors[found[0]]

    return {key: whole(value, key) for key, value in checkpoint.items()}


def placeholders(value: Any) -> Iterable[tuple[str, list[int], torch.dtype]]:
    """What is spread: its key, shape and type."""
    found = placeholder(value)
    if found is not None:
        yield found
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from placeholders(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from placeholders(item)


def placeholder(value: Any) -> tuple[str, list[int], torch.dtype] | None:
    if not (isinstance(value, Mapping) and list(value) == [PLACEHOLDER]):
        return None
    key, shape, dtype = value[PLACEHOLDER]
    return key, shape, getattr(torch, dtype)


def describe(fs: FileSystem, root: Path, directory: Path) -> tuple[Part, ...]:
    """The files of a directory of shards, with size and checksum, after they were made durable."""
    parts = []
    for path in sorted(directory.iterdir()):
        with open(path, "rb") as file:
            fs.sync(file.fileno())
            size, checksum = hash_stream(file)
        parts.append(Part(path.relative_to(root).as_posix(), size, checksum))
    fs.sync_directory(directory)
    fs.sync_directory(root)
    return tuple(parts)


def remove_unused(root: Path, used: Iterable[str]) -> None:
    """Delete the directories of shards that no checkpoint of the store refers to."""
    wanted = {name.partition("/")[0] for name in used}
    for path in root.glob(f"{PREFIX}*"):
        if path.is_dir() and not path.is_symlink() and path.name not in wanted:
            shutil.rmtree(path, ignore_errors=True)


def _mapped(value: Any, function: Callable[[Any, Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: function(item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [function(item, index) for index, item in enumerate(value)]
    return value
