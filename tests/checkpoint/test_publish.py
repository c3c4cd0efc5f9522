from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.checkpoint.diff import diff
from hookline.checkpoint.loading import load_checkpoint
from hookline.checkpoint.publish import publish
from hookline.errors import ConfigError


def checkpoint(average: bool) -> dict[str, Any]:
    model = nn.Linear(2, 3)
    content = {"state_dict": model.state_dict(), "optimizer": {"state": {}}, "meta": {"config": {"lr": 0.1}}}
    return {**content, "ema_state_dict": nn.Linear(2, 3).state_dict()} if average else content


@pytest.mark.parametrize("format", ["safetensors", "pth"])
@pytest.mark.parametrize("average", [False, True])
def test_published_weights_carry_their_hash_and_load_again(tmp_path: Path, format: str, average: bool) -> None:
    content = checkpoint(average)
    path = publish(content, tmp_path / "out" / "model", format)
    assert path == tmp_path / "out" / f"model-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}.{format}"
    assert os.listdir(path.parent) == [path.name]
    wanted = content["ema_state_dict" if average else "state_dict"]
    assert diff(load_checkpoint(path), {"state_dict": dict(wanted)}) == []


def test_a_pth_file_keeps_the_parts_that_are_asked_for(tmp_path: Path) -> None:
    path = publish(checkpoint(True), tmp_path / "model", "pth", keys=["meta", "state_dict"])
    assert set(load_checkpoint(path)) == {"meta", "state_dict"}


def test_tied_weights_can_be_published(tmp_path: Path) -> None:
    weight = torch.randn(4, 4)
    content = {"state_dict": {"a": weight, "tied": weight, "turned": weight.t()}}
    assert diff(load_checkpoint(publish(content, tmp_path / "model")), content) == []


def test_mistakes_are_answered_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown format 'safetensor'; did you mean 'safetensors'\?"):
        publish(checkpoint(False), tmp_path / "model", "safetensor")
    with pytest.raises(ConfigError, match=r"no 'state_dct'; did you mean 'state_dict'\?"):
        publish(checkpoint(False), tmp_path / "model", "pth", keys=["state_dct"])
    with pytest.raises(ConfigError, match="use format 'pth'"):
        publish(checkpoint(False), tmp_path / "model", keys=["meta", "state_dict"])
    with pytest.raises(ConfigError, match=r"state_dict\.x: a int"):
        publish({"state_dict": {"x": 1}}, tmp_path / "model")
    assert not list(tmp_path.iterdir())
