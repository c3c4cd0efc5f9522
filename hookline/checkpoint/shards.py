"""Sharded checkpoints: their tensors are spread over ranks.

Such a checkpoint is a file in which a placeholder stands for every sharded tensor, and a directory
with the shards that each rank has written. The directory is complete and on disk before the file
is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem, hash_stream
from hookline.checkpoint.manifest import Part

PLACEHOLDER = "sharded"  # the only key of a placeholder


def _named_dtypes() -> dict[str, torch.dtype]:
    named = {}
    for name, value in vars(torch).items():
        if isinstance(value, torch.dtype):
            named[name] = value
    return named


DTYPES = _named_dtypes()


class Placeholder(NamedTuple):
    """Stands for a sharded tensor: its key among the shards, its shape and its dtype."""

    key: str
    shape: list[int]
    dtype: torch.dtype

    def to_plain(self) -> dict[str, Any]:
        return {PLACEHOLDER: [self.key, self.shape, dtype_name(self.dtype)]}


def split(checkpoint: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a checkpoint with placeholders for its sharded tensors, and these tensors by key."""
    shards: dict[str, Any] = {}

    def replace(value: Any, path: str) -> Any:
        if isinstance(value, Tensor) and hasattr(value, "full_tensor"):
            shards[path] = value.detach()
            return Placeholder(path, list(value.shape), value.dtype).to_plain()
        return _map_items(value, lambda item, name: replace(item, f"{path}/{name}"))

    plain = {key: replace(value, key) for key, value in checkpoint.items()}
    return plain, shards


def join(checkpoint: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return a checkpoint with tensors in place of the placeholders."""

    def replace(value: Any, _name: Any) -> Any:
        found = find_placeholder(value)
        if found is not None:
            return tensors[found.key]
        return _map_items(value, replace)

    return {key: replace(value, key) for key, value in checkpoint.items()}


def placeholders(value: Any) -> Iterator[Placeholder]:
    """Yield the placeholders in a nested structure."""
    found = find_placeholder(value)
    if found is not None:
        yield found
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from placeholders(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from placeholders(item)


def find_placeholder(value: Any) -> Placeholder | None:
    """Return the placeholder that a value is, or None."""
    if not (isinstance(value, Mapping) and list(value) == [PLACEHOLDER]):
        return None
    key, shape, dtype = value[PLACEHOLDER]
    return Placeholder(str(key), [int(size) for size in shape], parse_dtype(dtype))


def dtype_name(dtype: torch.dtype) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def parse_dtype(name: str) -> torch.dtype:
    """Return the dtype with a name such as `float32`; raise CheckpointError if there is none."""
    if name not in DTYPES:
        raise CheckpointError(f"unknown dtype {name!r}")
    return DTYPES[name]


def describe_parts(fs: FileSystem, root: Path, directory: Path) -> tuple[Part, ...]:
    """Make the files of a shard directory durable; return their sizes and checksums."""
    parts = []
    for path in sorted(directory.iterdir()):
        with open(path, "rb") as file:
            fs.sync(file.fileno())
            size, checksum = hash_stream(file)
        parts.append(Part(path.relative_to(root).as_posix(), size, checksum))
    fs.sync_directory(directory)
    fs.sync_directory(root)
    return tuple(parts)


def _map_items(value: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Return a container with `function(item, key or index)` for each item; else the value."""
    if isinstance(value, Mapping):
        return {key: function(item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [function(item, index) for index, item in enumerate(value)]
    return value
