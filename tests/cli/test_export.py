"""`hookline export`: files, card and the checkpoint that is chosen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from hookline.checkpoint import load_checkpoint
from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config

pytest.importorskip("onnxruntime")


def test_the_best_checkpoint_is_exported_and_verified(tmp_path: Path, capsys) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    capsys.readouterr()
    assert main(["export", config, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["checkpoint"].endswith("best_accuracy.pth")
    assert sorted(result["files"]) == ["onnx", "pt2", "safetensors"]
    assert all(Path(path).is_file() for path in result["files"].values())
    assert "digits" in Path(result["card"]).read_text()


def test_averaged_weights_are_exported(tmp_path: Path, capsys) -> None:
    config = write_config(tmp_path, "  - {type: EMAHook, momentum: 0.5}\n")
    assert main(["train", config]) == 0
    output = tmp_path / "out"
    command = ["export", config, "--checkpoint", "last", "--format", "safetensors"]
    assert main([*command, "-o", str(output)]) == 0
    checkpoint = load_checkpoint(tmp_path / "run" / "last.pth")
    found = safetensors.torch.load_file(output / "model.safetensors")
    for name, value in checkpoint["ema_state_dict"].items():
        assert torch.equal(found[name], value)
    assert sorted(path.name for path in output.iterdir()) == ["README.md", "model.safetensors"]


def test_a_run_without_checkpoints_is_an_error(tmp_path: Path) -> None:
    error_of("export", write_config(tmp_path))
