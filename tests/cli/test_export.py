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


def test_commands_take_the_url_of_a_checkpoint(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path)
    url = f"file://{tmp_path}/store"
    assert main(["train", config, f"work_dir={url}"]) == 0
    assert main(["dry-run", config, f"resume={url}/last.pth"]) == 0
    capsys.readouterr()
    for command in ("test", "export"):
        options = ["--format", "safetensors"] if command == "export" else []
        arguments = [command, config, "--checkpoint", f"{url}/last.pth", "--json", *options]
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["checkpoint"] == f"{url}/last.pth"
    assert (tmp_path / "run/export/model.safetensors").is_file()


def test_an_empty_disk_is_an_error_that_names_the_url(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = error_of("export", write_config(tmp_path), f"work_dir=file://{tmp_path}/store")
    assert f"file://{tmp_path}/store/last.pth" in error.suggestion.advice
