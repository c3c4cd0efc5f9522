"""`hookline predict`: the predictions of a checkpoint in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
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


def test_every_kind_of_file_has_the_same_predictions(config: str, tmp_path: Path) -> None:
    paths = {kind: tmp_path / f"p.{kind}" for kind in ("npy", "npz", "jsonl", "parquet")}
    for path in paths.values():
        assert main(["predict", config, "--split", "val", "--out", str(path)]) == 0
    expected = np.load(paths["npy"])
    assert np.array_equal(np.load(paths["npz"])["prediction"], expected)
    lines = [json.loads(line)["prediction"] for line in paths["jsonl"].read_text().splitlines()]
    assert np.array_equal(np.float32(lines), expected)
    table = pyarrow.parquet.read_table(paths["parquet"])
    assert np.array_equal(np.float32(table["prediction"].to_pylist()), expected)


@pytest.mark.slow
def test_two_processes_write_the_file_of_one(config: str, tmp_path: Path) -> None:
    paths = [tmp_path / "one.npy", tmp_path / "two.npy"]
    assert main(["predict", config, "--split", "val", "-o", str(paths[0])]) == 0
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--standalone",
    ]
    predict = ["-m", "hookline", "predict", config, "--split", "val", "-o", str(paths[1])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*launch, *predict], env=environment, check=True, capture_output=True)
    one, two = (np.load(path) for path in paths)
    np.testing.assert_allclose(two, one, rtol=0.0, atol=1e-6)


def test_a_file_of_another_kind_is_an_error(config: str) -> None:
    error = error_of("predict", config, "-o", "predictions.txt")
    assert error.problems[0].parameter == "--output"


def test_a_run_without_checkpoints_is_an_error(config: str, tmp_path: Path) -> None:
    error = error_of("predict", config, "--work-dir", str(tmp_path))
    assert error.problems[0].parameter == "--checkpoint"
