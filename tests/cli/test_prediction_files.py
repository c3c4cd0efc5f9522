"""Files of predictions of any form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch

from hookline.cli.errors import CommandLineError
from hookline.cli.prediction_files import write_predictions

BY_NAME = [
    {"score": torch.tensor(0.5), "box": torch.tensor([1, 2])},
    {"score": torch.tensor(0.25), "box": torch.tensor([3, 4])},
]
UNEVEN = [torch.zeros(1), torch.zeros(3)]


def test_named_predictions_have_a_column_each(tmp_path: Path) -> None:
    rows = [{"score": 0.5, "box": [1, 2]}, {"score": 0.25, "box": [3, 4]}]
    write_predictions(BY_NAME, tmp_path / "p.jsonl")
    assert [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()] == rows
    write_predictions(BY_NAME, tmp_path / "p.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pylist() == rows
    write_predictions(BY_NAME, tmp_path / "p.npz")
    arrays = np.load(tmp_path / "p.npz")
    assert arrays["score"].tolist() == [0.5, 0.25]
    assert arrays["box"].tolist() == [[1, 2], [3, 4]]


def test_predictions_of_different_shapes_have_a_line_each(tmp_path: Path) -> None:
    write_predictions(UNEVEN, tmp_path / "p.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert lines == [{"prediction": [0.0]}, {"prediction": [0.0, 0.0, 0.0]}]
    write_predictions(UNEVEN, tmp_path / "p.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pylist() == lines


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_predictions_of_different_shapes_are_no_array(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(CommandLineError) as caught:
        write_predictions(UNEVEN, tmp_path / f"p{suffix}")
    assert caught.value.problems[0].parameter == "--output"


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandLineError) as caught:
        write_predictions(torch.zeros(2), tmp_path / "file" / "p.pt")
    assert caught.value.problems[0].parameter == "--output"
