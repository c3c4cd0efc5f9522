"""`hookline run-as`: run a script in whose process another framework's name means Hookline's version of it."""

from __future__ import annotations

import argparse
import importlib
import os
import runpy
import sys
from pathlib import Path

from hookline.cli.arguments import UsageError


def run(args: argparse.Namespace) -> int:
    script = Path(args.script)
    if not script.is_file():
        raise UsageError(f"{script}: there is no such script")
    compat = importlib.import_module("hookline.compat")  # by name: the commands stand beside it, not on it
    compat.install(args.package)
    before = sys.argv[:], sys.path[:]
    sys.argv = [str(script), *args.script_args]
    sys.path[:] = [str(script.resolve().parent), *(path for path in sys.path if path != os.getcwd())]  # as `python script.py` has it
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before
        compat.uninstall(args.package)
    return 0
