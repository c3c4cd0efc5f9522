"""The restricted reader of MMEngine's and MMCV's checkpoints."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._weights_only_unpickler import _get_allowed_globals

from hookline.checkpoint.errors import CheckpointError, UnsafeCheckpoint
from hookline.checkpoint.formats import deserialize
from hookline.compat import unpickle
from tests.checkpoint.pickles import naming_file, old_format, reachable_names

ADMITTED: dict[str, Any] = {name: target for target, name in unpickle._admitted()}


def test_only_the_listed_names_can_be_resolved_and_only_to_the_listed_objects():
    resolved = set()
    with torch.serialization.safe_globals(unpickle._admitted()):
        for module, name in {*reachable_names(), *named_pairs()}:
            full_name = f"{module}.{name}"
            stream = io.BytesIO(naming_file(module, name))
            if full_name in ADMITTED:
                assert deserialize(stream, "x.pth")["k"] is ADMITTED[full_name]
                resolved.add(full_name)
            elif full_name not in _get_allowed_globals():
                with pytest.raises(UnsafeCheckpoint):
                    deserialize(stream, "x.pth")
    assert resolved == set(ADMITTED)


def named_pairs():
    return [tuple(name.rsplit(".", 1)) for name in ADMITTED]


def test_getattr_reaches_only_the_statistics_of_the_history_buffer():
    assert ADMITTED["builtins.getattr"] is unpickle._attribute
    for owner, name in ((unpickle.History, "__init__"), (unpickle, "np"), ("", "format")):
        with pytest.raises(ValueError):
            unpickle._attribute(owner, name)


@pytest.mark.parametrize("name", ["numpy\ndtype", "builtins\ngetattr"])
def test_admitted_functions_cannot_be_used_to_reach_others(tmp_path: Path, name: str):
    text = b"X\x08\x00\x00\x00__init__"
    opcodes = b"}X\x01\x00\x00\x00kcbuiltins\ngetattr\n(c" + name.encode() + b"\n" + text + b"tRs"
    path = tmp_path / "evil.pth"
    path.write_bytes(old_format(opcodes))
    with pytest.raises(CheckpointError):
        unpickle.load(path)
