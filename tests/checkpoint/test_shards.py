"""Placeholders for sharded tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.shards import (
    describe_parts,
    dtype_name,
    find_placeholder,
    join,
    parse_dtype,
    placeholders,
    split,
)


@pytest.fixture
def sharded(tmp_path: Path) -> Iterator[DTensor]:
    """A sharded tensor, in a job of one rank."""
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    yield distribute_tensor(torch.arange(6.0), mesh, [Shard(0)])
    dist.destroy_process_group()


def test_sharded_tensors_are_replaced_by_placeholders_and_back(sharded: DTensor) -> None:
    checkpoint = {
        "state_dict": {"w": sharded, "b": torch.ones(2)},
        "optimizer": {"state": [{"m": sharded}]},
    }
    plain, shards = split(checkpoint)
    assert list(shards) == ["state_dict/w", "optimizer/state/0/m"]
    assert [each.key for each in placeholders(plain)] == list(shards)
    assert [each.full_tensor().tolist() for each in shards.values()] == [[0, 1, 2, 3, 4, 5]] * 2
    assert plain["state_dict"]["b"].tolist() == [1, 1]
    whole = join(plain, {key: torch.zeros(6) for key in shards})
    assert whole["state_dict"]["w"].tolist() == [0] * 6
    assert whole["optimizer"]["state"][0]["m"].tolist() == [0] * 6


def test_a_placeholder_has_the_shape_and_dtype_of_its_tensor(sharded: DTensor) -> None:
    plain, _ = split({"w": sharded})
    assert find_placeholder(plain["w"]) == ("w", [6], torch.float32)
    assert find_placeholder({"sharded": 1, "other": 2}) is None
    assert find_placeholder([1]) is None


@pytest.mark.parametrize("name", ["load", "hub", "Tensor", "float32.__class__", ""])
def test_a_name_that_is_not_a_dtype_is_rejected(name: str) -> None:
    with pytest.raises(CheckpointError):
        find_placeholder({"sharded": ["w", [1], name]})


def test_dtypes_have_names() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
        assert parse_dtype(dtype_name(dtype)) is dtype


def test_the_files_of_a_directory_are_described_with_size_and_checksum(tmp_path: Path) -> None:
    directory = tmp_path / "shards_1_0a1b2c3d"
    directory.mkdir()
    (directory / "b").write_bytes(b"12")
    (directory / "a").write_bytes(b"")
    parts = describe_parts(FileSystem(), tmp_path, directory)
    assert [(part.name, part.size) for part in parts] == [
        ("shards_1_0a1b2c3d/a", 0),
        ("shards_1_0a1b2c3d/b", 2),
    ]
    assert {part.directory for part in parts} == {"shards_1_0a1b2c3d"}
