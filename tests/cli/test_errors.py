"""Errors of the command line, and how errors are printed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from hookline.cli.commands import cli
from hookline.cli.errors import explain_usage_error, print_error, print_traceback
from hookline.cli.main import main
from hookline.errors import HooklineError, add_note


def usage_error(*arguments: str) -> click.UsageError:
    with (
        pytest.raises(click.UsageError) as caught,
        cli.make_context("hookline", list(arguments)) as context,
    ):
        cli.invoke(context)
    return caught.value


@pytest.mark.parametrize(
    ("arguments", "option", "nearest"),
    [
        (["train", "c.yaml", "--debg"], "--debg", "--debug"),
        (["train", "c.yaml", "--work-dri=x"], "--work-dri", "--work-dir"),
        (["ckpt", "publish", "x.pth", "--fromat", "pth"], "--fromat", "--format"),
        (["--versoin"], "--versoin", "--version"),
    ],
)
def test_an_unknown_option_suggests_the_nearest_one(
    arguments: list[str], option: str, nearest: str
) -> None:
    error = explain_usage_error(usage_error(*arguments))
    assert error.parameter == option
    assert error.suggestion.nearest == nearest


def test_a_usage_error_names_the_command_and_its_help() -> None:
    error = explain_usage_error(usage_error("ckpt", "diff", "one.pth"))
    assert error.component == "hookline ckpt diff"
    assert "hookline ckpt diff --help" in error.suggestion.advice


def test_an_error_is_printed_with_its_notes(capsys: pytest.CaptureFixture[str]) -> None:
    error = HooklineError("wrong")
    add_note(error, "a note")
    print_error(error)
    assert capsys.readouterr() == ("", "wrong\na note\n")


@pytest.mark.parametrize("complete", [False, True])
def test_a_traceback_begins_at_the_users_code_unless_it_is_complete(
    complete: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise RuntimeError('mine')\n")
    arguments = ["run-as", "mmengine", str(script)]
    assert main([*(["--debug"] if complete else []), *arguments]) == 1
    text = capsys.readouterr().err
    assert str(script) in text
    assert ("run_as.py" in text) == complete
    assert ("click" in text) == complete


def test_a_traceback_without_code_of_the_user_is_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        explain_usage_error(None)  # type: ignore[arg-type]
    except AttributeError as error:
        error.__traceback__ = error.__traceback__.tb_next  # without the frame of this test
        print_traceback(error, complete=False)
    text = capsys.readouterr().err
    assert "cli/errors.py" in text
    assert "AttributeError" in text
