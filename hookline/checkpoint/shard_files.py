"""The files of a sharded checkpoint, written and read by torch.distributed.checkpoint, whose import takes half as long as torch's."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import StorageMeta
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.shards import join, placeholders

# What the metadata of torch.distributed.checkpoint consists of; it is a pickle, and may name nothing else.
HARMLESS_MODULES = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem")
HARMLESS = {
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
    ("torch.distributed.checkpoint._extension", "StreamTransformExtension"),
    ("torch", "device"),
    ("collections", "OrderedDict"),
    ("builtins", "set"),
    ("pathlib", "PosixPath"),
    ("pathlib", "WindowsPath"),
}


def start_writing(shards: Mapping[str, Tensor], directory: Path, group: Any) -> Future[Any]:
    """Copy this process's parts, and have them written in the background; all processes call this."""
    directory.mkdir(parents=True, exist_ok=True)
    writer = FileSystemWriter(directory, sync_files=True)
    written: Any = async_save(dict(shards), storage_writer=writer, process_group=group)
    return written  # type: ignore[no-any-return]


def read(
    directory: Path, checkpoint: Mapping[str, Any], empty: Callable[[list[int], torch.dtype], Tensor], *, alone: bool
) -> dict[str, Any]:
    """A checkpoint with its tensors; `empty` makes what each is read into: a whole one, or this process's part of it."""
    tensors = {key: empty(shape, dtype) for key, shape, dtype in placeholders(checkpoint)}
    try:
        reader = _Reader(directory)
        reader.read_metadata()  # here, where what is wrong with it can be told
        load(tensors, storage_reader=reader, no_dist=alone)
    except (OSError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{directory}: the parts of the checkpoint cannot be read: {error}") from error
    return join(checkpoint, tensors)


class _Reader(FileSystemReader):
    """Reads the metadata, which is a pickle, without letting it name anything but what belongs in there."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
        with open(Path(os.fspath(self.path)) / ".metadata", "rb") as file:
            metadata = _Unpickler(file).load()
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        harmless = module in HARMLESS_MODULES or (module, name) in HARMLESS
        if harmless or (module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}, which has no business there")
