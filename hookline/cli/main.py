"""The entry points `hookline` and `python -m hookline`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from hookline.cli.commands import cli
from hookline.cli.errors import (
    CommandLineError,
    ExitCode,
    explain_usage_error,
    print_error,
    print_traceback,
)
from hookline.cli.group import is_debug
from hookline.errors import HooklineError
from hookline.streams import UnfailingStream, open_missing_streams

COMPLETION_VARIABLE = "_HOOKLINE_COMPLETE"


def entry() -> None:
    """Run the installed command."""
    open_missing_streams()
    # Configs name modules of the user. Last in the path, they cannot hide installed packages.
    sys.path.append(os.getcwd())
    completion = os.environ.get(COMPLETION_VARIABLE)
    if completion:
        sys.exit(shell_complete(cli, {}, "hookline", COMPLETION_VARIABLE, completion))
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit code, see `ExitCode`."""
    try:
        code = _run(list(argv))
        sys.stdout.flush()  # A closed pipe must raise here, where it is handled.
        return code
    except OSError as error:
        UnfailingStream(sys.stdout).give_up()
        if isinstance(error, BrokenPipeError):  # The reader is gone: `hookline plan … | head`.
            return ExitCode.SIGPIPE
        print_error(CommandLineError(f"standard output cannot be written: {error.strerror}"))
        return ExitCode.FAILED
    except KeyboardInterrupt:
        return ExitCode.SIGINT


def _run(argv: list[str]) -> int:
    try:
        with cli.make_context("hookline", argv) as context:
            return _invoke(context)
    except click.exceptions.Exit as finished:  # `--help` and `--version`
        return finished.exit_code
    except click.UsageError as error:
        print_error(explain_usage_error(error))
        return ExitCode.USAGE


def _invoke(context: click.Context) -> int:
    try:
        return int(cli.invoke(context))
    except (click.UsageError, click.exceptions.Exit, BrokenPipeError, KeyboardInterrupt):
        raise
    except HooklineError as error:
        if is_debug(context):
            print_traceback(error, complete=True)
        else:
            print_error(error)
        return ExitCode.USAGE
    except Exception as error:
        print_traceback(error, complete=is_debug(context))
        return ExitCode.FAILED
