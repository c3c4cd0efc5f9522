"""The pickled index of release 0.1.0, and attempts to execute code by it."""

from __future__ import annotations

import contextlib
import pickle
import pickletools
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributed.checkpoint import FileSystemWriter, save
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, Metadata, TensorProperties

from hookline.checkpoint.legacy_shards import FILE_NAME, ClosedUnpickler, convert, make_table
from hookline.checkpoint.shard_files import read
from hookline.checkpoint.shard_metadata import decode
from tests.checkpoint.helpers import Evil
from tests.checkpoint.pickles import dotted_call, reachable_names, short_text


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards with a pickled index, written by torch itself."""
    folder = tmp_path_factory.mktemp("legacy")
    store = dist.FileStore(str(folder / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    tensors = {"x": torch.arange(4.0), "y": torch.ones(2, 3, dtype=torch.bfloat16)}
    save(tensors, storage_writer=FileSystemWriter(folder / "shards"))
    dist.destroy_process_group()
    return folder / "shards"


def test_shards_with_a_pickled_index_are_read(directory: Path) -> None:
    checkpoint = {
        "x": {"sharded": ["x", [4], "float32"]},
        "y": {"sharded": ["y", [2, 3], "bfloat16"]},
    }
    found = read(directory, checkpoint, make_empty, alone=True)
    assert found["x"].tolist() == [0, 1, 2, 3]
    assert found["y"].tolist() == [[1, 1, 1], [1, 1, 1]]


def make_empty(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype)


def test_find_class_returns_nothing_outside_its_list() -> None:
    unpickler = ClosedUnpickler(b"")
    names = {*reachable_names(), *unpickler.table}
    assert ("torch.distributed.checkpoint.filesystem", "os.system") in names
    for module, name in names:
        if (module, name) in unpickler.table:
            assert unpickler.find_class(module, name) is unpickler.table[module, name]
        else:
            with pytest.raises(ValueError):
                unpickler.find_class(module, name)


def test_no_name_in_the_list_is_dotted_and_no_stand_in_can_do_anything() -> None:
    for (module, name), stand_in in make_table().items():
        assert "." not in name
        if stand_in in (tuple, dict) or isinstance(stand_in, str):
            continue
        own = set(vars(stand_in)) - {"__module__", "__dict__", "__weakref__", "__doc__"}
        assert own == {"__init__", "__setstate__"}, (module, name)


PAYLOADS = {
    "dotted name": lambda command: dotted_call("torch.distributed.checkpoint.filesystem", command),
    "admitted name with a dot": lambda command: (
        b"\x80\x04"
        + short_text("torch.distributed.checkpoint.metadata")
        + short_text("Metadata.__init__.__globals__")
        + b"\x93."
    ),
    "protocol 0": lambda command: b"cos\nsystem\n(S'" + command.encode() + b"'\ntR.",
    "INST": lambda command: b"(S'" + command.encode() + b"'\nios\nsystem\n.",
    "persistent id": lambda command: b"P0\n.",
    "extension": lambda command: b"\x82\x01.",
}


@pytest.mark.parametrize("make", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_is_rejected_and_not_executed(tmp_path: Path, make: Any) -> None:
    with pytest.raises(ValueError):
        convert(make(f"touch {tmp_path}/executed"))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_payload_in_any_protocol_is_rejected(tmp_path: Path, protocol: int) -> None:
    data = pickle.dumps(Metadata({"x": Evil(tmp_path / "executed")}), protocol)
    with pytest.raises(ValueError):
        convert(data)
    assert not (tmp_path / "executed").exists()


def test_values_that_are_not_tensors_are_rejected() -> None:
    with pytest.raises(ValueError, match="BytesStorageMetadata"):
        convert(pickle.dumps(Metadata({"x": BytesStorageMetadata()}, storage_data={})))


def test_a_file_cannot_change_the_stand_ins_of_the_next_one(directory: Path) -> None:
    # The class itself is on the stack; BUILD with a pair sets attributes of it.
    module = short_text("torch.distributed.checkpoint.metadata")
    build = module + short_text("Metadata") + b"\x93N}" + short_text("__setstate__") + b"Ns\x86b."
    with pytest.raises(ValueError):
        convert(b"\x80\x04" + build)
    good = (directory / FILE_NAME).read_bytes()
    assert set(decode(convert(good)).state_dict_metadata) == {"x", "y"}
    assert callable(TensorProperties.__setstate__)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_bytes_lead_to_no_other_error(directory: Path, data: st.DataObject) -> None:
    content = bytearray((directory / FILE_NAME).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        decode(convert(bytes(content)))


def test_the_list_has_all_names_of_a_real_index(directory: Path) -> None:
    opcodes = pickletools.genops((directory / FILE_NAME).read_bytes())
    texts = {argument for _, argument, _ in opcodes if isinstance(argument, str)}
    modules = {module for module, _ in make_table()}
    assert {text for text in texts if text.startswith("torch.")} <= {*modules, "torch.strided"}
