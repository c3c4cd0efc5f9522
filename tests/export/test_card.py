"""The model card."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hookline.checkpoint import CheckpointError
from hookline.export import write_card
from hookline.export.card import write_pretrained_card

META = {
    "epoch": 3,
    "iter": 120,
    "metrics": {"val/accuracy": 0.98765432},
    "versions": {"torch": "2.9"},
    "config": {
        "model": {"type": "cnn"},
        "dataset": {"type": "digits", "url": "https://me:hunter2@host/data"},
        "api_key": "hunter2",
    },
}


def test_a_card_has_data_metrics_config_versions_and_code_but_no_secrets(tmp_path: Path):
    files = {"onnx": tmp_path / "model.onnx", "pt2": tmp_path / "model.pt2"}
    path = write_card(tmp_path, files, META, {"": "float32 [N, 1, 8, 8]"}, "best_accuracy.pth")
    text = path.read_text()
    for word in ("# cnn", "best_accuracy.pth", "0.987654", "torch | 2.9", "type: digits"):
        assert word in text
    assert 'InferenceSession("model.onnx")' in text
    assert 'torch.export.load("model.pt2")' in text
    assert "load_file" not in text
    assert "float32 [N, 1, 8, 8]" in text
    assert "hunter2" not in text


def test_inputs_with_names_are_passed_by_name(tmp_path: Path):
    files = {"onnx": tmp_path / "model.onnx", "pt2": tmp_path / "model.pt2"}
    text = write_card(tmp_path, files, META, {"ids": "int64 [N, length]"}, "last.pth").read_text()
    assert "`ids` int64 [N, length]" in text
    assert "model(**inputs)" in text
    assert "session.run(None, inputs)" in text


def test_text_cannot_leave_its_cell(tmp_path: Path):
    path = write_card(tmp_path, {}, {"metrics": {"a|b\n# c": 1.0}}, {}, "last.pth")
    assert "| a\\|b # c | 1 |" in path.read_text()


HOSTILE = "x`\n\n# heading <script> ![](http://host)"


def test_text_of_a_foreign_checkpoint_stays_text(tmp_path: Path):
    meta = {
        "epoch": HOSTILE,
        "versions": {HOSTILE: HOSTILE},
        "config": {"model": {"type": HOSTILE}},
    }
    write_card(tmp_path, {}, meta, {}, HOSTILE)
    lines = (tmp_path / "README.md").read_text().split("````yaml")[0].splitlines()
    assert not any(line.startswith("# heading") or "<script>" in line for line in lines)
    meta = {"config": {"note": "a\n````\n# heading"}}
    base = 'a"); run("b'
    text = write_pretrained_card(tmp_path, "peft", "Auto", base, meta, "last.pth").read_text()
    assert 'from_pretrained("a\\"); run(\\"b")' in text
    assert text.count("`````yaml") == 1


@pytest.mark.parametrize(
    "meta", [{"config": [1]}, {"metrics": [1]}, {"config": {"a": torch.ones(1)}}]
)
def test_a_meta_of_a_wrong_form_is_an_error(meta, tmp_path: Path):
    with pytest.raises(CheckpointError):
        write_card(tmp_path, {}, meta, {}, "last.pth")
    with pytest.raises(CheckpointError):
        write_pretrained_card(tmp_path, "hf", "Auto", "base", meta, "last.pth")
    assert not list(tmp_path.iterdir())
