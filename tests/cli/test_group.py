"""Groups and commands: sections, suggestions, deprecated names and `--debug`."""

from __future__ import annotations

import click
import pytest

from hookline.cli.errors import CommandLineError
from hookline.cli.group import Command, Group, is_debug


@click.command("first", cls=Command)
@click.pass_context
def first(context: click.Context) -> str:
    """Do the first thing."""
    return "debug" if is_debug(context) else "plain"


@click.command("train", cls=Command)
def train() -> str:
    """Train something."""
    return "trained"


@click.group("tool", cls=Group, sections={"One": [train], "Two": [first]})
def tool() -> None:
    """A tool."""


@click.group("old", cls=Group, sections={"One": [first]}, deprecated_names={"erste": "first"})
def old() -> None:
    """A tool with an old name."""


def invoke(group: Group, *arguments: str) -> object:
    with group.make_context(group.name, list(arguments)) as context:
        return group.invoke(context)


def test_commands_are_listed_in_the_order_of_the_sections() -> None:
    context = click.Context(tool, info_name="tool")
    assert tool.list_commands(context) == ["train", "first"]
    text = tool.get_help(context)
    assert text.index("One:") < text.index("train") < text.index("Two:") < text.index("first")


@pytest.mark.parametrize("arguments", [["--debug", "first"], ["first", "--debug"]])
def test_debug_may_stand_before_or_after_the_command(arguments: list[str]) -> None:
    assert invoke(tool, *arguments) == "debug"
    assert invoke(tool, "first") == "plain"


def test_an_unknown_command_suggests_the_nearest_one() -> None:
    with pytest.raises(CommandLineError) as caught:
        invoke(tool, "fist")
    assert caught.value.component == "tool"
    assert caught.value.parameter == "fist"
    assert caught.value.suggestion.nearest == "first"


def test_an_unknown_command_that_resembles_none_lists_all() -> None:
    with pytest.raises(CommandLineError) as caught:
        invoke(tool, "zzz")
    assert caught.value.suggestion.known == ("first", "train")


def test_a_config_in_place_of_a_command_suggests_training() -> None:
    with pytest.raises(CommandLineError) as caught:
        invoke(tool, "config.yaml")
    assert caught.value.suggestion.nearest == "tool train config.yaml"


def test_a_deprecated_name_works_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(old, "erste") == "plain"
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "deprecated" in captured.err
    assert "old first" in captured.err


def test_a_deprecated_name_is_not_listed() -> None:
    assert "erste" not in old.get_help(click.Context(old))


def test_a_group_without_arguments_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as caught:
        invoke(tool)
    assert caught.value.exit_code == 2
    assert "Do the first thing." in capsys.readouterr().out
