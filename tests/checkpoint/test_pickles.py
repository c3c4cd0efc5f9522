"""Pickles that would crash the process which loads them."""

from __future__ import annotations

import io
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint import CheckpointError, load_checkpoint
from hookline.checkpoint.legacy_shards import convert
from hookline.checkpoint.parts import select_rank_state
from hookline.checkpoint.pickles import MAX_NESTED_TUPLES, check_nesting, load_plain
from hookline.data.tensors import Tensors
from hookline.dist import World
from hookline.errors import ConfigError
from tests.checkpoint.pickles import (
    DEEP,
    deep_key,
    deep_key_through_memo,
    deep_key_through_pairs,
    doubling_key,
    old_format,
    zip_format,
)

WAYS = {
    "tuples of one": deep_key,
    "tuples from a mark": deep_key_through_pairs,
    "the memo": deep_key_through_memo,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make_file", [zip_format, old_format])
def test_a_key_of_deeply_nested_tuples_is_refused_before_it_is_hashed(way, make_file, tmp_path):
    path = tmp_path / "deep.pth"
    path.write_bytes(make_file(WAYS[way](DEEP)))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("way", WAYS)
def test_a_key_of_a_few_nested_tuples_is_loaded(way):
    loaded = load_plain(io.BytesIO(zip_format(WAYS[way](MAX_NESTED_TUPLES - 1))))
    assert list(loaded.values()) == [1]


@pytest.mark.parametrize("make_file", [zip_format, old_format])
def test_a_key_whose_hash_would_never_end_is_refused(make_file, tmp_path):
    path = tmp_path / "doubling.pth"
    path.write_bytes(make_file(doubling_key(100)))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path)
    assert caught.value.file == str(path)


def test_a_long_tuple_of_tuples_is_loaded():
    pairs = tuple((number, (number, -number)) for number in range(30_000))
    stream = io.BytesIO()
    torch.save({"pairs": (pairs, pairs)}, stream)
    stream.seek(0)
    assert load_plain(stream) == {"pairs": (pairs, pairs)}


@pytest.mark.parametrize("way", WAYS)
def test_the_index_of_old_shards_is_refused_likewise(way):
    with pytest.raises(ValueError, match=str(MAX_NESTED_TUPLES)):
        convert(b"\x80\x02" + WAYS[way](DEEP) + b".")


def test_the_packed_state_of_a_rank_is_refused_likewise():
    packed = torch.frombuffer(bytearray(zip_format(deep_key(DEEP))), dtype=torch.uint8)
    checkpoint: dict[str, Any] = {"meta": {"iter": 1}, "by_rank": [packed, packed]}
    with pytest.raises(CheckpointError):
        select_rank_state(checkpoint, World(rank=1, size=2))


def test_a_file_of_data_is_refused_likewise(tmp_path):
    (tmp_path / "x.pt").write_bytes(zip_format(deep_key(DEEP)))
    with pytest.raises(ConfigError) as caught:
        Tensors(tmp_path / "x.pt", tmp_path / "x.pt")
    assert caught.value.component == "Tensors"


def test_the_tar_format_is_refused(tmp_path):
    path = tmp_path / "tar.pth"
    with tarfile.open(path, "w") as archive:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            data = b"\x80\x02" + deep_key(DEEP) + b"."
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol_are_read(protocol):
    shared = (1, (2, "x"), b"y", 2**70, None)
    value = {"a": [shared, shared, {3: {4.5, True}}], "b": frozenset([shared]), shared: ()}
    check_nesting(io.BytesIO(pickle.dumps(value, protocol)))


@pytest.mark.parametrize("data", [b"", b"\x80\x02", b"\x80\x02\x85.", b"\x80\x02h\x05.", b"(t(t"])
def test_an_incomplete_pickle_is_an_error(data):
    with pytest.raises(ValueError, match="pickle"):
        check_nesting(io.BytesIO(data))


def test_files_of_torch_are_loaded_from_where_they_begin(tmp_path: Path) -> None:
    content = {"w": torch.arange(3), "n": (1, (2, (3,)))}
    for zipped in (True, False):
        stream = io.BytesIO()
        torch.save(content, stream, _use_new_zipfile_serialization=zipped)
        assert zipfile.is_zipfile(stream) is zipped
        stream.seek(0)
        loaded = load_plain(stream)
        assert torch.equal(loaded["w"], content["w"])
        assert loaded["n"] == content["n"]
