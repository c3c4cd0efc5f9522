"""Published weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.loading import load_checkpoint
from hookline.checkpoint.publish import publish, publish_recommended, write_checkpoint
from hookline.checkpoint.store import CheckpointStore
from tests.checkpoint.helpers import content
from tests.problems import raises_problem


def checkpoint(average: bool) -> dict[str, Any]:
    model = nn.Linear(2, 3)
    parts = {
        "state_dict": model.state_dict(),
        "optimizer": {"state": {}},
        "meta": {"config": {"lr": 0.1}},
    }
    if average:
        parts["ema_state_dict"] = nn.Linear(2, 3).state_dict()
    return parts


@pytest.mark.parametrize("format", ["safetensors", "pth"])
@pytest.mark.parametrize("average", [False, True])
def test_published_weights_carry_their_hash_and_load_again(
    tmp_path: Path, format: str, average: bool
) -> None:
    source = checkpoint(average)
    path = publish(source, tmp_path / "out" / "model", format)
    digits = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    assert path == tmp_path / "out" / f"model-{digits}.{format}"
    assert os.listdir(path.parent) == [path.name]
    wanted = source["ema_state_dict" if average else "state_dict"]
    assert diff(load_checkpoint(path), {"state_dict": dict(wanted)}) == []


def test_a_pth_file_keeps_the_requested_parts(tmp_path: Path) -> None:
    path = publish(checkpoint(True), tmp_path / "model", "pth", keys=["meta", "state_dict"])
    assert set(load_checkpoint(path)) == {"meta", "state_dict"}


def test_tied_weights_can_be_published(tmp_path: Path) -> None:
    weight = torch.randn(4, 4)
    source = {"state_dict": {"a": weight, "tied": weight, "transposed": weight.t()}}
    assert diff(load_checkpoint(publish(source, tmp_path / "model")), source) == []


def test_the_error_for_an_unknown_format_suggests_the_nearest_one(tmp_path: Path) -> None:
    with raises_problem(parameter="format", nearest="safetensors"):
        publish(checkpoint(False), tmp_path / "model", "safetensor")
    assert not list(tmp_path.iterdir())


def test_the_last_and_the_best_checkpoint_of_a_store_are_published_beside_them(
    tmp_path: Path,
) -> None:
    store = CheckpointStore(tmp_path)
    store.prepare()
    store.save(checkpoint(False), "epoch_1.pth", step=1, epoch=1, links=["best_accuracy.pth"])
    store.save(checkpoint(False), "epoch_2.pth", step=2, epoch=2, links=["last.pth"])
    store.unlock()
    publish_recommended(store, ["state_dict"])
    published = [path for path in tmp_path.glob("*.pth") if "-" in path.name]
    assert sorted(path.name.partition("-")[0] for path in published) == ["best_accuracy", "last"]
    for path in published:
        whole = load_checkpoint(tmp_path / f"{path.name.partition('-')[0]}.pth")
        assert diff(load_checkpoint(path), {"state_dict": whole["state_dict"]}) == []


def test_the_error_for_an_unknown_key_suggests_the_nearest_one(tmp_path: Path) -> None:
    with raises_problem(parameter="keys", nearest="state_dict"):
        publish(checkpoint(False), tmp_path / "model", "pth", keys=["state_dct"])
    assert not list(tmp_path.iterdir())


def test_safetensors_holds_tensors_of_the_state_dict_only(tmp_path: Path) -> None:
    with raises_problem(parameter="keys", advice="use format 'pth'"):
        publish(checkpoint(False), tmp_path / "model", keys=["meta", "state_dict"])
    with raises_problem(path=("state_dict", "x"), advice="use format 'pth'"):
        publish({"state_dict": {"x": 1}}, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [torch.eye(2).to_sparse(), 1.5], ids=["sparse", "number"])
def test_safetensors_holds_dense_tensors_only(tmp_path: Path, value: Any) -> None:
    checkpoint = {"state_dict": {"weight": torch.zeros(2), "other": value}}
    with raises_problem(path=("state_dict", "other")):
        publish(checkpoint, tmp_path / "weights")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_written_to_a_file_outside_a_store(tmp_path: Path) -> None:
    path = tmp_path / "new" / "model.pth"
    for step in (1, 2):
        write_checkpoint(content(step), path)
        assert diff(load_checkpoint(path), content(step)) == []
    assert os.listdir(path.parent) == ["model.pth"]


def test_a_failed_write_is_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "model.pth"
    with raises_problem(CheckpointError, file=str(path)):
        write_checkpoint(content(1), path)
