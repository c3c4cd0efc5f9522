"""Every command that prints a result can print it as JSON, alone on standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.cli.main import main
from tests.cli.helpers import write_config
from tests.cli.test_commands import COMMANDS

PRINTING_MODEL = "tests.cli.test_json.Chatty"
# Runs a script, whose output is its own.
WITHOUT_RESULT = {"run-as"}
GROUPS = {"ckpt"}
# The arguments of each command, and a key of its result, or the type if it is a list.
CALLS: dict[str, tuple[list[str], str | None]] = {
    "train": (["CONFIG", "work_dir=OTHER"], "stop_reason"),
    "test": (["CONFIG"], "metrics"),
    "predict": (["CONFIG"], "samples"),
    "export": (["CONFIG", "--format", "safetensors", "-o", "OTHER/export"], "files"),
    "dry-run": (["CONFIG"], "ready"),
    "verify-resume": (["CONFIG", "--kills", "1", "training.epochs=6"], "equal"),
    "config": (["CONFIG"], "model"),
    "plan": (["CONFIG"], "hooks"),
    "hooks": ([], "EMAHook"),
    "sites": ([], "before_run"),
    "lr": (["CONFIG"], "lr"),
    "lr-find": (["CONFIG", "--iters", "10"], "rates"),
    "batch-find": (["CONFIG", "--max", "256"], "largest"),
    "log": (["RUN"], "run"),
    "report": (["RUN"], "file"),
    "watch": (["RUN"], None),
    "ckpt ls": (["RUN"], None),
    "ckpt show": (["RUN"], "state_dict"),
    "ckpt verify": (["RUN"], "last.pth"),
    "ckpt publish": (["RUN/last.pth", "-o", "OTHER/published"], "file"),
    "ckpt diff": (["RUN/last.pth", "RUN/last.pth"], "equal"),
    "ckpt consolidate": (["RUN/last.pth", "-o", "OTHER/whole.pth"], "file"),
    "ckpt import": (["FOREIGN", "-o", "OTHER/imported.pth"], "iter"),
    "demo": ([], "stop_reason"),
    "init": (["OTHER/project"], "files"),
    "new-hook": (["MyHook", "--dir", "OTHER"], "files"),
    "doctor": ([], "healthy"),
}


class Chatty(torch.nn.Sequential):
    """A model that prints when it is built and when it is called."""

    def __init__(self) -> None:
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        print("built")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        print("called")
        outputs: torch.Tensor = super().forward(inputs)
        return outputs


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config and its finished run; the model prints when it is built."""
    folder = tmp_path_factory.mktemp("project")
    config = write_config(folder)
    text = Path(config).read_text().replace("type: cnn, width: 4", f"type: {PRINTING_MODEL}")
    Path(config).write_text(text)
    assert main(["train", config]) == 0
    model = torch.nn.Linear(2, 2)
    torch.save(
        {"meta": {"epoch": 1, "iter": 4}, "state_dict": model.state_dict()}, folder / "foreign.pth"
    )
    return folder


def test_every_command_with_a_result_has_a_call_here() -> None:
    assert set(CALLS) == set(COMMANDS) - WITHOUT_RESULT - GROUPS


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_one_json_document(
    name: str,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    places = {
        "CONFIG": str(project / "config.yaml"),
        "RUN": str(project / "run"),
        "OTHER": str(tmp_path / "other"),
        "FOREIGN": str(project / "foreign.pth"),
    }
    arguments, key = CALLS[name]
    filled = []
    for argument in arguments:
        for word, place in places.items():
            argument = argument.replace(word, place)
        filled.append(argument)
    assert main([*name.split(), *filled, "--json"]) == 0
    result: Any = json.loads(capsys.readouterr().out)
    assert isinstance(result, list) if key is None else key in result


def test_a_failure_has_its_exit_code_and_nothing_on_standard_output(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", str(project / "config.yaml"), "seeed=1", "--json"]) == 2
    assert capsys.readouterr().out == ""


def test_differences_are_a_result_with_exit_code_1(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert main(["train", str(project / "config.yaml"), f"work_dir={other}", "seed=2"]) == 0
    capsys.readouterr()
    files = [str(project / "run" / "last.pth"), str(other / "last.pth")]
    assert main(["ckpt", "diff", *files, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["equal"] is False
    assert result["differences"]["state_dict"]


def test_a_damaged_checkpoint_is_a_result_with_exit_code_1(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["train", str(project / "config.yaml"), f"work_dir={run}"]) == 0
    with (run / "last.pth").open("r+b") as file:
        file.seek(200)
        file.write(b"\x00" * 50)
    capsys.readouterr()
    assert main(["ckpt", "verify", str(run), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["last.pth"]["good"] is False
    assert result["last.pth"]["error"]
