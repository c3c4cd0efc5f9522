"""DVCLive's files, read back as they are."""

from __future__ import annotations

import csv
import json

import pytest
import yaml
from PIL import Image

from hookline.errors import ConfigError
from hookline.hooks import DVCLiveHook
from tests.events.parts import BreakAt, PutEverything, image_run

pytest.importorskip("dvclive")


def table(folder, name):
    with (folder / "plots" / "metrics" / f"{name}.tsv").open(newline="") as file:
        return [
            (int(row["step"]), float(row[name.rpartition("/")[2]]))
            for row in csv.DictReader(file, delimiter="\t")
        ]


def test_tables_summaries_parameters_and_pictures_come_back(tmp_path):
    runner = image_run(
        tmp_path,
        {"type": "DVCLiveHook", "interval": 5, "report": "html"},
        PutEverything(),
        {"type": "HistogramHook", "interval": 20},
    )
    folder = tmp_path / "dvclive"
    assert [step for step, _ in table(folder, "train/loss")] == [5, 10, 15, 20]
    assert table(folder, "val/accuracy")[-1] == (2, pytest.approx(runner.metrics["accuracy"]))
    assert json.loads((folder / "metrics.json").read_text())["val"]["accuracy"] == pytest.approx(
        runner.metrics["accuracy"]
    )
    assert yaml.safe_load((folder / "params.yaml").read_text())["optimizer"]["lr"] == 0.1
    assert Image.open(folder / "plots" / "images" / "pictures" / "ramp" / "1.png").size == (8, 8)
    assert (folder / "text" / "note.txt").read_text() == "a <b>note</b>"
    assert len(json.loads((folder / "plots" / "custom" / "numbers_1.json").read_text())) == 64
    assert (folder / "report.html").exists()


def test_a_resumed_run_leaves_the_tables_of_an_uninterrupted_one(tmp_path):
    hook = {"type": "DVCLiveHook", "interval": 2}
    with pytest.raises(RuntimeError):
        image_run(tmp_path / "cut", hook, BreakAt(17))
    image_run(tmp_path / "cut", hook, resume="auto")
    image_run(tmp_path / "straight", hook)
    for name in ("train/loss", "val/loss", "train/epoch"):
        assert table(tmp_path / "cut" / "dvclive", name) == table(
            tmp_path / "straight" / "dvclive", name
        )


def test_a_folder_of_ones_choice(tmp_path):
    image_run(
        tmp_path / "run",
        {"type": "DvcliveLoggerHook", "dir": str(tmp_path / "live"), "interval": 5},
        epochs=1,
    )
    assert table(tmp_path / "live", "train/loss")


def test_checkpoints_can_only_be_handed_to_dvc_with_an_experiment():
    with pytest.raises(ConfigError) as caught:
        DVCLiveHook(log_model=True)
    assert (caught.value.component, caught.value.parameter) == ("DVCLiveHook", "log_model")
