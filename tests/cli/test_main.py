"""`main` and `entry`: exit codes, streams, tracebacks and the search path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookline import __version__
from hookline.cli.main import main
from tests.cli.helpers import ROOT, command, write_config
from tests.waiting import LIMIT_S


def test_help_goes_to_standard_output_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    captured = capsys.readouterr()
    assert "Usage: hookline" in captured.out
    assert captured.err == ""


def test_no_command_prints_the_help_and_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "Usage: hookline" in capsys.readouterr().out


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hookline {__version__}\n"


def test_help_of_all_commands_imports_no_torch() -> None:
    code = """if True:
        import sys
        from hookline.cli.commands import cli
        from hookline.cli.main import main
        for name in cli.commands:
            main([name, "--help"])
        main(["--help"])
        main(["ckpt", "ls", "--help"])
        sys.exit("torch" in sys.modules or "numpy" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL)
    assert done.returncode == 0


def test_a_usage_error_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "c.yaml", "--debg"]) == 2
    captured = capsys.readouterr()
    assert "unknown option '--debg'; did you mean '--debug'?" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["train"],
        ["test", "c.yaml", "--split", "vall"],
        ["sites", "extra"],
        ["train", "c.yaml", "--nproc", "0"],
        ["train", "c.yaml", "--device"],
        ["--debug"],
        ["trian", "c.yaml"],
        ["train", "no_such_config.yaml"],
    ],
)
def test_a_wrong_command_line_exits_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [["--debug", "config"], ["config", "--debug"]])
def test_debug_shows_the_traceback_of_an_error_in_the_config(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "no_such_config.yaml"]) == 2
    assert capsys.readouterr().err.startswith("Traceback")


def test_overrides_may_stand_between_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    overrides = ["seed=3", "--debug", "training.epochs=7", "+hooks.x.type=IterTimerHook"]
    assert main(["config", config, *overrides]) == 0
    text = capsys.readouterr().out
    assert "seed: 3" in text
    assert "epochs: 7" in text
    assert "IterTimerHook" in text


def test_a_closed_pipe_exits_with_141_and_without_a_message() -> None:
    process = command("sites")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=LIMIT_S) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_modules_of_the_current_directory_are_found_but_hide_no_package(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hookline").write_text("from hookline.cli.main import entry\nentry()\n")
    (tmp_path / "my_hooks.py").write_text(
        "from hookline import BaseHook\n\nclass MyHook(BaseHook):\n    'Mine.'\n"
    )
    (tmp_path / "yaml.py").write_text("raise SystemExit('the wrong module')\n")
    process = command("hooks", "my_hooks.MyHook", start=["bin/hookline"], cwd=tmp_path)
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert "Mine." in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hookline dry", {"dry-run"}),
        ("hookline ckpt ", {"ls", "show", "diff", "import"}),
        ("hookline train c.yaml --de", {"--device", "--debug"}),
    ],
)
def test_the_shell_completes_commands_and_options(words: str, expected: set[str]) -> None:
    completion = {
        "_HOOKLINE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    process = command(env={**os.environ, "PYTHONPATH": str(ROOT), **completion})
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, "")
    assert expected <= {line.partition(",")[2] for line in out.splitlines()}
