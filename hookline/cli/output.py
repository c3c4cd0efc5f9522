"""Tables and JSON on standard output."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hookline.config.components import called
from hookline.engine import BaseHook, Priority, get_priority


def print_table(rows: Sequence[Sequence[str]], headers: Sequence[str] = ()) -> None:
    """Aligned columns; on a terminal the last one wraps within its width, elsewhere a row is a line."""
    if sys.stdout.isatty():
        _print_rich(rows, headers)
        return
    lines = [*([headers] if headers else []), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_json(value: Any) -> None:
    """One JSON document; what is not a finite number becomes text, for JSON has no NaN."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False))


def hook_label(hook: BaseHook) -> str:
    """The name of a hook, with its class where the name does not tell it."""
    return called(type(hook).__name__, {"name": hook.name})


def priority_label(value: int | str | Priority) -> str:
    """`NORMAL 50`, or just the number if it has no name."""
    number = get_priority(value)
    return " ".join([*(named.name for named in Priority if named == number), str(number)])


def _print_rich(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(headers), header_style="bold")
    for index in range(len(rows[0]) if rows else 0):
        last = index == len(rows[0]) - 1
        table.add_column(headers[index] if headers else "", no_wrap=not last, style="cyan" if index == 0 else None)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text, for a bracket in a cell is not markup
    Console().print(table)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
