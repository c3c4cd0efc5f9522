"""Checkpoints of earlier releases resume."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from scripts.make_golden_checkpoint import ITERS, golden_runner

FILES = sorted((Path(__file__).parent / "golden").glob("checkpoint_*.pth"))


def test_there_is_one():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_checkpoint_of_an_earlier_release_is_resumed_where_it_was(tmp_path, path):
    resumed = golden_runner(tmp_path, iters=ITERS + 6, resume=path)
    resumed.train()
    assert resumed.iter == ITERS + 6
    assert resumed.hook("CheckpointHook").kept[0] == "iter_3.pth"
    straight = golden_runner(tmp_path / "straight", iters=ITERS + 6)
    straight.train()
    for (name, one), two in zip(
        resumed.model.state_dict().items(), straight.model.state_dict().values(), strict=True
    ):
        assert torch.allclose(one, two, atol=1e-4), (
            name
        )  # not bit for bit: it was made on another machine
