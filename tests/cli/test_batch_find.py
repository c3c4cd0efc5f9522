"""`hookline batch-find`: the largest batch that trains without running out of memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config


class Small(nn.Module):
    """A model that runs out of memory with more than 100 samples."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, inputs: Any) -> Any:
        if len(inputs) > 100:
            raise torch.OutOfMemoryError("forward")
        return self.layer(inputs.flatten(1))


def config(folder: Path) -> list[str]:
    return [write_config(folder), "model={type: tests.cli.test_batch_find.Small}"]


def test_the_largest_batch_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch-find", *config(tmp_path), "--max", "1024", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["configured"] == 256
    assert 88 <= result["largest"] <= 100
    assert result["tried"][0] == {"batch_size": 256, "fits": False}
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["max_train_batches", "overfit_batches"])
def test_a_limited_epoch_does_not_limit_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    arguments = [*config(tmp_path), f"+training.{option}=1", "--max", "64", "--json"]
    assert main(["batch-find", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["largest"] == 64


def test_the_text_names_a_hook_that_keeps_the_configured_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batch-find", *config(tmp_path), "--max", "1024"]) == 0
    assert "MicroBatchHook" in capsys.readouterr().out


def test_a_search_on_a_cpu_needs_a_limit(tmp_path: Path) -> None:
    assert error_of("batch-find", *config(tmp_path)).problems[0].parameter == "--max"
