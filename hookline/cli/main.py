"""The command `hookline`: which command is meant, and what its end means for the exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from hookline.cli.arguments import COMMANDS, read_arguments
from hookline.cli.failures import show_failure, show_mistake
from hookline.errors import HooklineError

DONE, FAILED, MISTAKE, SIGINT, SIGPIPE = 0, 1, 2, 130, 141


def entry() -> None:
    """The installed command."""
    sys.path.append(os.getcwd())  # so that a config finds the user's modules; last, so that none of them hides another
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Run one command; its exit code. 0: done, 1: it failed, 2: a user's mistake, 128 + n: ended by signal n."""
    try:
        code = _run(argv)
        sys.stdout.flush()  # here, where a closed pipe can still be dealt with
        return code
    except BrokenPipeError:  # `hookline plan … | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGPIPE
    except KeyboardInterrupt:
        return SIGINT


def _run(argv: Sequence[str]) -> int:
    try:
        args = read_arguments(argv)
    except SystemExit as finished:  # argparse has shown the help, or what is wrong
        return finished.code if isinstance(finished.code, int) else MISTAKE
    except HooklineError as error:
        show_mistake(error)
        return MISTAKE
    return _guarded(args)


def _guarded(args: argparse.Namespace) -> int:
    command = importlib.import_module(COMMANDS[args.command].module)  # here, so that `--help` need not wait for torch
    try:
        return int(command.run(args))
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except HooklineError as error:
        show_failure(error, whole=True) if args.debug else show_mistake(error)
        return MISTAKE
    except Exception as error:
        show_failure(error, whole=args.debug)
        return FAILED
