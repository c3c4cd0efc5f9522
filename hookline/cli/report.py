"""`hookline report`: what happened in one run or several, as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from hookline.cli.arguments import UsageError
from hookline.report.names import REPORT
from hookline.report.page import write_report


def run(args: argparse.Namespace) -> int:
    target = Path(args.output) if args.output else _default(args.runs)
    try:
        write_report(args.runs, target)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror or error}") from error
    print(target)
    return 0


def _default(runs: list[str]) -> Path:
    """In the folder of a single run, beside nothing of several."""
    if len(runs) > 1:
        return Path(REPORT)
    folder = Path(runs[0])
    return (folder.parent if folder.is_file() else folder) / REPORT
