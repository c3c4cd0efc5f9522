"""The index of a shard directory, as JSON: which file holds which part of which tensor.

torch.distributed.checkpoint writes its index as a pickle, and its reader unpickles both the index
and every value that the index declares to be bytes. Anyone who can write a checkpoint could run
code that way. This index describes tensors only, and is plain data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from hookline.checkpoint.names import check_name
from hookline.checkpoint.shards import dtype_name, parse_dtype
from hookline.errors import HooklineError

FILE_NAME = "index.json"
FORMAT = 1


@dataclass(frozen=True)
class StoredChunk:
    """The place of a chunk, with the attributes that torch's reader expects."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: None = None


def encode(metadata: Metadata) -> bytes:
    """Return the index of shards that were written; raise ValueError for anything but tensors."""
    tensors = {}
    for key, tensor in metadata.state_dict_metadata.items():
        if not isinstance(tensor, TensorStorageMetadata):
            raise ValueError(f"{key} is not a tensor")
        chunks = []
        for chunk in tensor.chunks:
            stored = metadata.storage_data[MetadataIndex(key, chunk.offsets)]
            chunks.append(
                {
                    "offset": list(chunk.offsets),
                    "shape": list(chunk.sizes),
                    "file": stored.relative_path,
                    "start": stored.offset,
                    "length": stored.length,
                }
            )
        dtype = dtype_name(tensor.properties.dtype)
        tensors[key] = {"shape": list(tensor.size), "dtype": dtype, "chunks": chunks}
    return json.dumps({"format": FORMAT, "tensors": tensors}).encode()


def decode(data: bytes) -> Metadata:
    """Return the metadata for torch's reader; raise ValueError if the index is not valid."""
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r} is unknown")
        state: dict[str, Any] = {}
        storage: dict[MetadataIndex, StoredChunk] = {}
        for key, item in content["tensors"].items():
            state[key] = _decode_tensor(key, item, storage)
    except (HooklineError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not an index of shards ({type(error).__name__}: {error})") from error
    return Metadata(state_dict_metadata=state, storage_data=storage)


def _decode_tensor(
    key: str, item: Mapping[str, Any], storage: dict[MetadataIndex, StoredChunk]
) -> TensorStorageMetadata:
    """Return the metadata of one tensor, and enter the places of its chunks into `storage`."""
    shape = _sizes(item["shape"])
    covered = 0
    chunks = []
    for chunk in item["chunks"]:
        offset = _sizes(chunk["offset"])
        size = _sizes(chunk["shape"])
        if not _is_inside(offset, size, shape):
            raise ValueError(f"{key}: a chunk lies outside the tensor")
        covered += math.prod(size)
        chunks.append(ChunkStorageMetadata(torch.Size(offset), torch.Size(size)))
        start, length = _sizes([chunk["start"], chunk["length"]])
        place = StoredChunk(check_name(chunk["file"]), start, length)
        storage[MetadataIndex(key, offset)] = place
    if covered != math.prod(shape):
        raise ValueError(f"{key}: the chunks do not cover the tensor")
    properties = TensorProperties(dtype=parse_dtype(item["dtype"]))
    return TensorStorageMetadata(properties, torch.Size(shape), chunks)


def _sizes(values: Any) -> list[int]:
    """Return a list of whole numbers that are not negative; raise ValueError for anything else."""
    if not isinstance(values, list):
        raise ValueError(f"{values!r} is not a list of sizes")
    for value in values:
        if type(value) is not int or value < 0:
            raise ValueError(f"{value!r} is not a size")
    return values


def _is_inside(offset: list[int], size: list[int], shape: list[int]) -> bool:
    if not len(offset) == len(size) == len(shape):
        return False
    ends = [start + length for start, length in zip(offset, size, strict=True)]
    return all(end <= limit for end, limit in zip(ends, shape, strict=True))
