"""Tables, labels and JSON on standard output."""

from __future__ import annotations

import contextlib
import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.cli.printing import show, show_json
from hookline.printable import escaped, printable
from hookline.priority import Priority, get_priority

if TYPE_CHECKING:
    from hookline.engine import BaseHook  # It needs torch, and `hookline doctor` works without.

MIN_CHART_COLUMNS = 30
MAX_CHART_COLUMNS = 100
CHART_MARGIN = 16  # columns for the labels beside a chart


def print_table(rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> None:
    """Print aligned columns. On a terminal the last column wraps; elsewhere a row is one line."""
    if sys.stdout.isatty():
        _print_rich_table(rows, headers)
        return
    lines = [[escaped(cell) for cell in line] for line in ([headers, *rows] if headers else rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        show("  ".join(cells).rstrip())


def print_json(value: Any) -> None:
    """Print one JSON document. NaN and infinity, which JSON does not have, become strings."""
    show_json(_json_value(value))


def print_path(path: Path, as_json: bool) -> None:
    """Print the path of a file that a command has written."""
    if as_json:
        print_json({"file": str(path)})
    else:
        show(path)


@contextlib.contextmanager
def only_json(as_json: bool) -> Iterator[None]:
    """Send what models, data and hooks print to standard error if the result is JSON."""
    if not as_json:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield


def chart_columns() -> int:
    """Return the width of a text chart that fits the terminal."""
    columns = shutil.get_terminal_size().columns - CHART_MARGIN
    return min(max(columns, MIN_CHART_COLUMNS), MAX_CHART_COLUMNS)


def hook_label(hook: BaseHook) -> str:
    """Return the name of a hook, with its class if the two differ."""
    class_name = type(hook).__name__
    if hook.name in ("", class_name):
        return class_name
    return f"{hook.name} ({class_name})"


def priority_label(value: int | str | Priority) -> str:
    """Return `NORMAL 50`, or only the number if it has no name."""
    number = get_priority(value)
    for priority in Priority:
        if priority == number:
            return f"{priority.name} {number}"
    return str(number)


def _print_rich_table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    count = len(rows[0]) if rows else 0
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_header=bool(headers),
        header_style="bold",
    )
    for index in range(count):
        table.add_column(
            headers[index] if headers else "",
            no_wrap=index < count - 1,
            style="cyan" if index == 0 else None,
        )
    for row in rows:
        # Text: a bracket in a cell is not markup.
        table.add_row(*(Text(printable(escaped(cell))) for cell in row))
    Console().print(table)


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
