"""Checkpoints of earlier releases resume, and their configs are valid."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from scripts.make_golden_checkpoint import ITERS, golden_runner
from tests.checks import all_failures
from tests.docs.test_snippets import check_part

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("checkpoint_*.pth"))
CONFIGS = sorted(GOLDEN.glob("configs_*.yaml"))


def test_there_is_one():
    assert FILES
    assert CONFIGS


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


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_configs_of_an_earlier_release_are_valid(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    configs = path.read_text(encoding="utf-8").split("\n---\n")[1:]
    assert len(configs) > 50
    with all_failures() as check:
        for text in configs:
            with check(text.partition("\n")[0]):
                check_part(text)
