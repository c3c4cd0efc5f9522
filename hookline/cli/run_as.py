"""`hookline run-as`: run a script with Hookline's version of another framework."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hookline.cli.errors import CommandLineError


def run(package: str, script: str, arguments: Sequence[str]) -> int:
    """Run a script as `__main__`, with `package` replaced in this process."""
    path = Path(script)
    if not path.is_file():
        raise CommandLineError(f"no such script: {path}", parameter="SCRIPT", value=script)
    # Imported by name: no layer of the package depends on `compat`.
    compat = importlib.import_module("hookline.compat")
    compat.install(package)
    try:
        with _script_environment(path, arguments):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        compat.uninstall(package)
    return 0


@contextmanager
def _script_environment(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Set `sys.argv` and `sys.path` as `python script.py` would."""
    argv = sys.argv[:]
    path = sys.path[:]
    sys.argv = [str(script), *arguments]
    # The first entry is that of `python -m hookline` or of the command; the rest is PYTHONPATH's.
    launcher = ("", os.getcwd(), os.path.dirname(os.path.abspath(argv[0])))
    others = path[1:] if path[0] in launcher else path
    sys.path[:] = [str(script.resolve().parent), *others]
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = path
