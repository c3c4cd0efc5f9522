"""The declarations of all commands: help texts, examples, and parameters."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator

import click
import pytest

from hookline.cli.commands import cli
from hookline.cli.main import main

DEFINED = ("train", "test", "plan", "hooks", "sites", "config", "ckpt", "dry-run", "lr-find")


def walk(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from walk(command, *path, name)


COMMANDS = {" ".join(path): command for path, command in walk(cli)}


def examples() -> list[str]:
    """Return every `hookline …` line of the help texts, without its explanation."""
    found = []
    for command in (cli, *COMMANDS.values()):
        for text in (inspect.cleandoc(command.help or ""), command.epilog or ""):
            found += re.findall(r"^ +(hookline .*?)(?:   .*)?$", text, re.MULTILINE)
    return found


def parse(arguments: list[str]) -> click.Context:
    """Parse a command line without running it."""
    context = cli.make_context("hookline", arguments[:1])
    command: click.Command = cli
    rest = list(arguments)
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        if isinstance(command, click.Group):
            context = command.make_context(name, rest[:1], parent=context)
    return command.make_context(name, rest, parent=context)


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert set(DEFINED) <= set(cli.commands)
    for name in cli.commands:
        assert re.search(rf"^  {name} +\S", text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert f"Usage: hookline {name}" in text
    assert "--debug" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_fits_a_line_of_the_help(name: str) -> None:
    summary = COMMANDS[name].get_short_help_str(limit=59)
    assert summary.endswith(".")
    assert not summary.endswith("...")


@pytest.mark.parametrize("example", examples())
def test_every_example_of_a_help_text_is_a_valid_command_line(example: str) -> None:
    assert parse(shlex.split(example)[1:]).params is not None


def test_rehearse_is_a_deprecated_name_of_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "--help"]) == 0
    captured = capsys.readouterr()
    assert "Usage: hookline dry-run" in captured.out
    assert "deprecated" in captured.err


@pytest.mark.parametrize(
    ("arguments", "resume", "overrides"),
    [
        (["--resume"], "auto", ()),
        (["--resume", "last.pth"], "last.pth", ()),
        (["--resume=last.pth", "seed=2"], "last.pth", ("seed=2",)),
        (["--resume", "seed=2", "seed=3"], "auto", ("seed=2", "seed=3")),
        (["--resume", "+hooks.x.type=Y"], "auto", ("+hooks.x.type=Y",)),
        (["--resume", "hooks[0].interval=2"], "auto", ("hooks[0].interval=2",)),
        (["--resume", "runs/lr=0.1/last.pth"], "runs/lr=0.1/last.pth", ()),
        (["seed=2", "--resume", "--device", "cpu"], "auto", ("seed=2",)),
        ([], None, ()),
    ],
)
def test_resume_takes_an_optional_path_but_no_override(
    arguments: list[str], resume: str | None, overrides: tuple[str, ...]
) -> None:
    params = parse(["train", "c.yaml", *arguments]).params
    assert params["resume"] == resume
    assert params["overrides"] == overrides


def test_resume_takes_a_file_whose_name_looks_like_an_override(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "epoch=3").touch()
    assert parse(["train", "c.yaml", "--resume", "epoch=3"]).params["resume"] == "epoch=3"


def test_a_script_of_run_as_gets_all_options_behind_it() -> None:
    params = parse(["run-as", "mmcv", "train.py", "config.py", "--debug", "--work-dir", "x"]).params
    assert params["arguments"] == ("config.py", "--debug", "--work-dir", "x")
