"""`hookline predict`: the predictions of a checkpoint in a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from hookline import Runner
from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The config of a finished run."""
    path = write_config(tmp_path_factory.mktemp("project"))
    assert main(["train", path]) == 0
    return path


def test_the_file_has_the_predictions_of_the_best_checkpoint_in_the_order_of_the_data(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", config, "--split", "val", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert Path(result["checkpoint"]).name == "best_accuracy.pth"
    predictions = torch.load(result["file"], weights_only=True)
    assert len(predictions) == result["samples"]
    runner = Runner.from_config(config, [f"load_from={result['checkpoint']}"])
    targets = torch.cat([each for _, each in runner.val_loader])  # type: ignore[union-attr]
    accuracy = (predictions.argmax(1) == targets).float().mean().item()
    assert accuracy == pytest.approx(runner.validate()["accuracy"])


def test_the_file_may_be_an_array(config: str, tmp_path: Path) -> None:
    target = tmp_path / "predictions.npy"
    assert main(["predict", config, "-o", str(target), "--checkpoint", "last"]) == 0
    assert np.load(target).shape[1:] == (10,)


def test_a_file_of_another_kind_is_an_error(config: str) -> None:
    error = error_of("predict", config, "-o", "predictions.txt")
    assert error.problems[0].parameter == "--output"


def test_a_run_without_checkpoints_is_an_error(config: str, tmp_path: Path) -> None:
    error = error_of("predict", config, "--work-dir", str(tmp_path))
    assert error.problems[0].parameter == "--checkpoint"
