"""Commands that show runs: log, report, watch."""

from __future__ import annotations

from typing import Any

import click

from hookline.cli.commands.options import json_option, plot_option
from hookline.cli.group import Command

run_arguments = click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())


@click.command(cls=Command)
@run_arguments
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="The metric to draw; may be repeated. Default: loss.",
)
@plot_option
@json_option
def log(**options: Any) -> int:
    """Show the logged scalars of runs as a table and as curves.

    RUN is the work directory of a run, or its log.jsonl.

    \b
    Examples:
      hookline log runs/digits
      hookline log runs/a runs/b --metric loss --metric accuracy --plot curves.png
    """
    from hookline.cli.log import run

    return run(**options)


@click.command(cls=Command)
@run_arguments
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    help="The file to write. Default: report.html in the directory of the run, or here for "
    "several runs.",
)
@json_option
def report(**options: Any) -> int:
    """Write an HTML report about one run or several.

    The page has curves, a timeline, costs, checkpoints, pictures and configs. RUN is the work
    directory of a run, also of one that crashed. Several runs share their charts.

    \b
    Examples:
      hookline report runs/digits
      hookline report runs/a runs/b -o compare.html
    """
    from hookline.cli.report import run

    return run(**options)


@click.command(cls=Command)
@click.argument("directory", metavar="[DIR]", default="runs", type=click.Path())
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port of the page. Default: a free one.",
)
@click.option("--read-only", is_flag=True, help="Leave out the buttons that save and stop.")
@click.option("--text", is_flag=True, help="Show the runs in the terminal, not in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the state of the runs now as JSON.")
def watch(**options: Any) -> int:
    """Follow running jobs in a browser or in the terminal.

    DIR is a run, or a directory with runs. Default: runs.

    \b
    Examples:
      hookline watch
      hookline watch runs/digits --port 8000 --read-only
      hookline watch --text
    """
    from hookline.cli.watch import run

    return run(**options)
