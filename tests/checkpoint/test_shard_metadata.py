"""The index of a shard directory."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

from hookline.checkpoint.shard_metadata import StoredChunk, decode, encode


def metadata() -> Metadata:
    """Return the metadata of a tensor in two chunks and of a scalar."""
    rows = [
        ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([1, 3])),
        ChunkStorageMetadata(torch.Size([1, 0]), torch.Size([1, 3])),
    ]
    scalar = [ChunkStorageMetadata(torch.Size([]), torch.Size([]))]
    return Metadata(
        state_dict_metadata={
            "w": TensorStorageMetadata(TensorProperties(torch.bfloat16), torch.Size([2, 3]), rows),
            "step": TensorStorageMetadata(TensorProperties(torch.int64), torch.Size([]), scalar),
        },
        storage_data={
            MetadataIndex("w", [0, 0]): StoredChunk("__0_0.distcp", 0, 10),
            MetadataIndex("w", [1, 0]): StoredChunk("__1_0.distcp", 0, 10),
            MetadataIndex("step", []): StoredChunk("__0_0.distcp", 10, 4),
        },
    )


def changed(**changes: Any) -> bytes:
    """Return an index in which the tensor `w` has other fields."""
    content = json.loads(encode(metadata()))
    content["tensors"]["w"] |= changes
    return json.dumps(content).encode()


def chunk(**changes: Any) -> list[dict[str, Any]]:
    """Return the chunks of `w` with a changed first one."""
    chunks = json.loads(encode(metadata()))["tensors"]["w"]["chunks"]
    chunks[0] |= changes
    return chunks


def test_an_index_survives_a_round_trip() -> None:
    assert decode(encode(metadata())) == metadata()


def test_values_that_are_not_tensors_are_not_written() -> None:
    with pytest.raises(ValueError, match="note"):
        encode(Metadata({"note": BytesStorageMetadata()}, storage_data={}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"format": 2, "tensors": {}}',
        b'{"format": 1, "tensors": []}',
        b'{"format": 1, "tensors": {"w": null}}',
        b"[" * 100_000,
        b"\xff",
        b"\x80\x04N.",
    ],
    ids=range(10),
)
def test_any_other_content_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "load"},
        {"dtype": None},
        {"shape": [2, -3]},
        {"shape": [2, 3.0]},
        {"shape": "23"},
        {"shape": [2, True]},
        {"shape": [9, 3]},
        {"chunks": []},
        {"chunks": chunk(file="../../etc/passwd")},
        {"chunks": chunk(file="/etc/passwd")},
        {"chunks": chunk(file=None)},
        {"chunks": chunk(start=-1)},
        {"chunks": chunk(length="10")},
        {"chunks": chunk(offset=[5, 0])},
        {"chunks": chunk(offset=[0])},
        {"chunks": chunk(shape=[1, 2])},
    ],
    ids=str,
)
def test_invalid_fields_are_rejected(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        decode(changed(**changes))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(["shape", "dtype", "chunks"]), json_values)
def test_no_value_of_a_field_leads_to_any_other_error(field: str, value: Any) -> None:
    try:
        found = decode(changed(**{field: value}))
    except ValueError:
        return
    assert isinstance(found, Metadata)
