"""Shards on disk, and attempts to execute code by them."""

from __future__ import annotations

import io
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
)

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.shard_files import read, start_writing
from hookline.checkpoint.shard_metadata import FILE_NAME, StoredChunk
from tests.checkpoint.helpers import Evil
from tests.checkpoint.pickles import dotted_call

PLACEHOLDER = {"x": {"sharded": ["x", [4], "float32"]}}


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A directory with the shards of `x`, written by a job of one rank."""
    directory = tmp_path / "shards"
    directory.mkdir()
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    start_writing({"x": torch.arange(4.0)}, directory, None).result()
    dist.destroy_process_group()
    return directory


def read_alone(directory: Path, checkpoint: Any = PLACEHOLDER) -> dict[str, Any]:
    return read(
        directory, checkpoint, lambda shape, dtype: torch.empty(shape, dtype=dtype), alone=True
    )


def test_written_shards_are_read(shards: Path) -> None:
    assert read_alone(shards)["x"].tolist() == [0, 1, 2, 3]


def test_the_index_is_plain_json_and_there_is_no_pickle(shards: Path) -> None:
    assert sorted(path.name for path in shards.iterdir()) == ["__0_0.distcp", FILE_NAME]
    json.loads((shards / FILE_NAME).read_bytes())


def test_a_missing_and_a_damaged_index_are_errors_with_its_path(shards: Path) -> None:
    for damage in (lambda path: path.write_bytes(b"{"), Path.unlink):
        damage(shards / FILE_NAME)
        with pytest.raises(CheckpointError) as caught:
            read_alone(shards)
        assert caught.value.file == str(shards / FILE_NAME)


def test_missing_and_truncated_shards_are_errors_with_their_directory(shards: Path) -> None:
    for damage in (lambda path: path.write_bytes(b"short"), Path.unlink):
        damage(shards / "__0_0.distcp")
        with pytest.raises(CheckpointError) as caught:
            read_alone(shards)
        assert caught.value.file == str(shards)


@pytest.mark.parametrize(
    "placeholder",
    [["x", [5], "float32"], ["x", [4], "float64"], ["y", [4], "float32"]],
    ids=["shape", "dtype", "key"],
)
def test_shards_that_do_not_fit_the_checkpoint_are_an_error(
    shards: Path, placeholder: list[Any]
) -> None:
    with pytest.raises(CheckpointError):
        read_alone(shards, {"x": {"sharded": placeholder}})


def test_shards_that_claim_more_than_the_memory_are_an_error(shards: Path) -> None:
    path = shards / FILE_NAME
    path.write_text(path.read_text(encoding="utf-8").replace("[4]", f"[{2**60}]"), encoding="utf-8")
    with pytest.raises(CheckpointError):
        read_alone(shards, {"x": {"sharded": ["x", [2**60], "float32"]}})


def test_a_pickled_index_is_not_executed(tmp_path: Path) -> None:
    payload = dotted_call("torch.distributed.checkpoint.filesystem", f"touch {tmp_path}/executed")
    for name in (".metadata", "__0.metadata", FILE_NAME):
        (tmp_path / name).write_bytes(payload)
        with pytest.raises(CheckpointError):
            read_alone(tmp_path)
    assert not (tmp_path / "executed").exists()


def test_a_pickled_value_in_a_shard_is_not_executed(tmp_path: Path) -> None:
    # torch's reader unpickles freely what its metadata declares as bytes.
    stream = io.BytesIO()
    torch.save(Evil(tmp_path / "executed"), stream)
    (tmp_path / "__0_0.distcp").write_bytes(stream.getvalue())
    place = StoredChunk("__0_0.distcp", 0, len(stream.getvalue()))
    metadata = Metadata(
        {"x": BytesStorageMetadata()}, {}, {MetadataIndex("x"): place}, StorageMeta()
    )
    (tmp_path / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(CheckpointError):
        read_alone(tmp_path)
    for index in ({"x": {}}, {"x": {"shape": [], "dtype": "float32", "chunks": []}}):
        content = json.dumps({"format": 1, "tensors": index})
        (tmp_path / FILE_NAME).write_text(content)
        with pytest.raises(CheckpointError):
            read_alone(tmp_path)
    assert not (tmp_path / "executed").exists()


def test_a_pickled_tensor_in_a_shard_is_not_executed(shards: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save(Evil(tmp_path / "executed"), stream)
    payload = stream.getvalue()
    (shards / "__0_0.distcp").write_bytes(payload)
    index = json.loads((shards / FILE_NAME).read_bytes())
    index["tensors"]["x"]["chunks"][0] |= {"start": 0, "length": len(payload)}
    (shards / FILE_NAME).write_text(json.dumps(index))
    with pytest.raises(CheckpointError):
        read_alone(shards)
    assert not (tmp_path / "executed").exists()


def test_shards_are_read_from_their_directory_only(shards: Path, tmp_path: Path) -> None:
    os.rename(shards / "__0_0.distcp", tmp_path / "outside")
    index = json.loads((shards / FILE_NAME).read_bytes())
    for name in ("../outside", str(tmp_path / "outside")):
        index["tensors"]["x"]["chunks"][0]["file"] = name
        (shards / FILE_NAME).write_text(json.dumps(index))
        with pytest.raises(CheckpointError) as caught:
            read_alone(shards)
        assert caught.value.file == str(shards / FILE_NAME)
