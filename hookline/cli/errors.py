"""Exit codes, errors in the command line, and how errors are printed."""

from __future__ import annotations

import contextlib
import sys
import traceback
from enum import IntEnum
from pathlib import Path
from types import TracebackType

import click

from hookline.cli.printing import show
from hookline.errors import HooklineError, Suggestion, suggest

# Frames of these packages at the start of a traceback are hidden: users look for their own code.
HIDDEN_PACKAGES = (
    str(Path(__file__).parents[1]),
    str(Path(click.__file__).parent),
    contextlib.__file__,
)


class ExitCode(IntEnum):
    """Exit codes of `hookline`. A run that a signal stopped exits with 128 plus its number."""

    OK = 0
    FAILED = 1
    USAGE = 2
    SIGINT = 130
    SIGPIPE = 141


class CommandLineError(HooklineError):
    """The command line is wrong."""


def explain_usage_error(error: click.UsageError) -> CommandLineError:
    """Return click's error in our wording, with a suggestion."""
    command = "hookline" if error.ctx is None else error.ctx.command_path
    if isinstance(error, click.NoSuchOption):
        return CommandLineError(
            f"unknown option {error.option_name!r}",
            component=command,
            parameter=error.option_name,
            suggestion=suggest(error.option_name, _known_options(error.ctx)),
        )
    message = error.format_message().removesuffix(".")
    advice = Suggestion(advice=f"see `{command} --help`")
    return CommandLineError(message, component=command, suggestion=advice)


def print_error(error: BaseException) -> None:
    """Print an error without its traceback, which does not help with a mistake in a config."""
    show("\n".join([str(error), *_notes(error)]), errors=True)


def print_traceback(error: BaseException, *, complete: bool) -> None:
    """Print a traceback and the notes that name the hook and the site.

    Args:
        error: The exception.
        complete: Also show the frames of Hookline that lead to the user's code.
    """
    frames = error.__traceback__
    if not complete:
        frames = _skip_hidden_frames(frames)
    lines = traceback.format_exception(type(error), error, frames)
    if sys.version_info < (3, 11):  # Python 3.10 does not print notes.
        lines += [f"{note}\n" for note in _notes(error)]
    show("".join(lines), end="", errors=True)


def _known_options(context: click.Context | None) -> list[str]:
    if context is None:
        return []
    names: list[str] = []
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option):
            names += [*parameter.opts, *parameter.secondary_opts]
    return names


def _skip_hidden_frames(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the first visible frame on, or all of it if there is none."""
    visible = frames
    while visible is not None and _is_hidden(visible):
        visible = visible.tb_next
    return visible or frames


def _is_hidden(frame: TracebackType) -> bool:
    return frame.tb_frame.f_code.co_filename.startswith(HIDDEN_PACKAGES)


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))
