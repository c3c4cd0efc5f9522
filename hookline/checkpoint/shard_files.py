"""Write and read shards with torch.distributed.checkpoint.

Importing that takes half as long as importing torch, so this module is imported on use.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

from hookline.checkpoint import legacy_shards, shard_metadata
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem, read_regular, replace_file
from hookline.checkpoint.shards import Placeholder, join, placeholders

MakeEmpty = Callable[[list[int], torch.dtype], Tensor]


def start_writing(shards: Mapping[str, Tensor], directory: Path, group: Any) -> Future[Any]:
    """Copy this rank's shards and write them in the background; all ranks call this."""
    writer = _Writer(directory, sync_files=True)
    written: Any = async_save(dict(shards), storage_writer=writer, process_group=group)
    return written  # type: ignore[no-any-return]


def read(
    directory: Path, checkpoint: Mapping[str, Any], empty: MakeEmpty, *, alone: bool
) -> dict[str, Any]:
    """Return a checkpoint with tensors in place of its placeholders.

    Args:
        directory: The shard directory.
        checkpoint: The content of the checkpoint file.
        empty: Makes the tensor that is read into: a whole one, or this rank's part of it.
        alone: Whether this process reads by itself, or together with all ranks.

    Raises:
        CheckpointError: If the shards cannot be read or do not fit the placeholders.
    """
    wanted = list(placeholders(checkpoint))
    metadata = _read_index(directory)
    for placeholder in wanted:
        _check_shape(placeholder, metadata, directory)
    try:
        tensors = {each.key: empty(each.shape, each.dtype) for each in wanted}
    except RuntimeError as error:  # torch's error for too little memory
        message = "the tensors do not fit into memory"
        raise CheckpointError(message, file=str(directory)) from error
    with warnings.catch_warnings():
        if alone:  # torch warns that it reads in a single process, which is intended
            warnings.simplefilter("ignore", UserWarning)
        try:
            load(tensors, storage_reader=_Reader(directory, metadata), no_dist=alone)
        except CheckpointException as error:
            raise _read_error(directory, error) from error
    return join(checkpoint, tensors)


class _Writer(FileSystemWriter):
    """A writer whose index of the shards is JSON instead of a pickle."""

    def finish(self, metadata: Metadata, results: list[list[Any]]) -> None:
        storage = {}
        for rank_results in results:
            for result in rank_results:
                storage[result.index] = result.storage_data
        metadata.storage_data = storage
        data = shard_metadata.encode(metadata)
        path = Path(os.fspath(self.path)) / shard_metadata.FILE_NAME
        replace_file(FileSystem(), path, lambda stream: stream.write(data))


class _Reader(FileSystemReader):
    """A reader with an index that is known already, so that nothing is unpickled."""

    def __init__(self, directory: Path, metadata: Metadata) -> None:
        super().__init__(directory)
        self._metadata = metadata

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        return self._metadata


def _read_index(directory: Path) -> Metadata:
    path = directory / shard_metadata.FILE_NAME
    legacy = directory / legacy_shards.FILE_NAME
    if not path.exists() and legacy.exists():
        path = legacy
    try:
        data = read_regular(path)
        if path == legacy:
            data = legacy_shards.convert(data)
        return shard_metadata.decode(data)
    except OSError as error:
        reason = error.strerror or error
        raise CheckpointError(f"cannot be read: {reason}", file=str(path)) from error
    except ValueError as error:
        raise CheckpointError(str(error), file=str(path)) from error


def _check_shape(placeholder: Placeholder, metadata: Metadata, directory: Path) -> None:
    found: Any = metadata.state_dict_metadata.get(placeholder.key)
    if found is None:
        raise CheckpointError(f"holds no shards of {placeholder.key}", file=str(directory))
    if list(found.size) != placeholder.shape or found.properties.dtype != placeholder.dtype:
        message = f"the shards of {placeholder.key} have another shape or dtype"
        raise CheckpointError(message, file=str(directory))


def _read_error(directory: Path, error: CheckpointException) -> CheckpointError:
    reasons = []
    for rank, (cause, _) in error.failures.items():
        reasons.append(f"rank {rank}: {cause}")
    return CheckpointError(f"the shards cannot be read: {'; '.join(reasons)}", file=str(directory))
