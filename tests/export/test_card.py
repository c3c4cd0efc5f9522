"""The model card."""

from __future__ import annotations

from pathlib import Path

from hookline.export import write_card

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
    path = write_card(tmp_path, files, META, "float32 [N, 1, 8, 8]", "best_accuracy.pth")
    text = path.read_text()
    for word in ("# cnn", "best_accuracy.pth", "0.987654", "torch | 2.9", "type: digits"):
        assert word in text
    assert 'InferenceSession("model.onnx")' in text
    assert 'torch.export.load("model.pt2")' in text
    assert "load_file" not in text
    assert "float32 [N, 1, 8, 8]" in text
    assert "hunter2" not in text


def test_text_cannot_leave_its_cell(tmp_path: Path):
    path = write_card(tmp_path, {}, {"metrics": {"a|b\n# c": 1.0}}, "x", "last.pth")
    assert "| a\\|b # c | 1 |" in path.read_text()
