"""`hookline report`: write an HTML report about one run or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hookline.cli.errors import CommandLineError
from hookline.cli.output import print_path
from hookline.report.names import REPORT
from hookline.report.page import write_report


def run(runs: Sequence[str], output: str | None, as_json: bool) -> int:
    """Write the report and print its path."""
    target = _default_target(runs) if output is None else Path(output)
    try:
        write_report(list(runs), target)
    except OSError as error:
        reason = error.strerror or error
        raise CommandLineError(f"cannot write {target}: {reason}", parameter="--output") from error
    print_path(target, as_json)
    return 0


def _default_target(runs: Sequence[str]) -> Path:
    """Return a file in the directory of a single run, or in the current one for several."""
    if len(runs) > 1:
        return Path(REPORT)
    run = Path(runs[0])
    directory = run.parent if run.is_file() else run
    return directory / REPORT
