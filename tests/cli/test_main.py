from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.cli.helpers import ROOT, command, write_config

COMMANDS = ("train", "test", "plan", "hooks", "sites", "config")


def test_help_names_every_command_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n    {name} " in text for name in COMMANDS)
    assert "examples:" in text
    assert "exit codes:" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"hookline {name}" in text
    assert "--debug" in text


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys; from hookline.cli.main import main; main(['--help']); main(['train', '--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from hookline import __version__

    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["trian", "c.yaml"], "unknown command 'trian'; did you mean 'train'?"),
        (["c.yaml"], "did you mean 'hookline train c.yaml'?"),
        (["train"], "CONFIG"),
        (["train", "c.yaml", "--debg"], "unknown option '--debg'; did you mean '--debug'?"),
        (["train", "c.yaml", "--work-dri=x"], "unknown option '--work-dri'; did you mean '--work-dir'?"),
        (["test", "c.yaml", "--split", "vall"], "val"),
        (["sites", "extra"], "hookline sites does not take 'extra'"),
        (["train", "no_such_config.yaml"], "no_such_config.yaml: no such file"),
    ],
)
def test_a_wrong_command_line_is_a_mistake_with_a_hint(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert expected in shown.err
    assert shown.out == ""


def test_no_command_shows_the_help_and_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: hookline" in capsys.readouterr().out


def test_a_near_file_name_is_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(tmp_path)
    assert main(["config", str(tmp_path / "confg.yaml")]) == 2
    assert "did you mean 'config.yaml'?" in capsys.readouterr().err


def test_overrides_may_stand_before_between_and_behind_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    assert main(["config", config, "seed=3", "--debug", "training.epochs=7", "+hooks.x.type=IterTimerHook"]) == 0
    text = capsys.readouterr().out
    assert "seed: 3" in text
    assert "epochs: 7" in text
    assert "IterTimerHook" in text


@pytest.mark.parametrize("arguments", [["--debug", "config"], ["config", "--debug"]])
def test_debug_shows_the_traceback_of_a_mistake(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "no_such_config.yaml"]) == 2
    text = capsys.readouterr().err
    assert "Traceback" in text
    assert "no such file" in text


def test_a_closed_pipe_is_quiet() -> None:
    process = command("sites")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_the_installed_command_finds_modules_in_the_current_directory_last(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hookline").write_text("from hookline.cli.main import entry\nentry()\n")
    (tmp_path / "my_hooks.py").write_text("from hookline import BaseHook\n\nclass MyHook(BaseHook):\n    'Mine.'\n")
    (tmp_path / "yaml.py").write_text("raise SystemExit('the wrong module')\n")
    process = command("hooks", "my_hooks.MyHook", start=["bin/hookline"], cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "Mine." in out
