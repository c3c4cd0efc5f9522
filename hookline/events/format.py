"""Format scalars for log lines and the progress bar."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from hookline.printable import escaped

MEMORY = "system/memory_mb"
SHOWN_FIRST = ("loss",)  # A narrow terminal cuts the end of the line.
SHOWN_LAST = ("time", "data_time", "eta", MEMORY)
GROUP_RATE = re.compile(r"lr(_[^/]*)?/")  # the learning rate of a parameter group
MAX_GROUP_RATES = 4  # in one line
CURVES_ONLY = ("data/", "lr", "memory/", "system/", "throughput/", "time/")  # too many for a line


def format_scalars(scalars: Mapping[str, float], widths: dict[str, int] | None = None) -> str:
    """Return `loss 0.1234  accuracy 0.9750  eta 0:00:12`, with the loss first and memory last.

    Args:
        scalars: The values by name.
        widths: The widest text of each name so far, which is updated. Values are aligned to it.
    """
    names = list(scalars)  # A mapping of metrics also has "loss", as another name of "val_loss".
    first = [name for name in SHOWN_FIRST if name in names]
    last = [name for name in SHOWN_LAST if name in names]
    rest = [name for name in names if name not in (*first, *last)]
    parts = []
    for name in (*first, *rest, *last):
        value = format_value(name, scalars[name])
        if widths is not None:
            widths[name] = max(widths.get(name, 0), len(value))
            value = value.rjust(widths[name])
        parts.append(f"{'memory' if name == MEMORY else escaped(name)} {value}")
    return "  ".join(parts)


def for_lines(scalars: Mapping[str, float]) -> dict[str, float]:
    """Return the scalars of a training report that fit in a log line.

    Groups of measurements such as `system/cpu` are left out, except for memory and a few rates.
    """
    rates = [name for name in scalars if GROUP_RATE.match(name)]
    kept = {MEMORY, *(rates if len(rates) <= MAX_GROUP_RATES else ())}
    lines = {}
    for name, value in scalars.items():
        is_group = "/" in name and name.startswith(CURVES_ONLY)
        if not is_group or name in kept:
            lines[name] = value
    return lines


def format_value(name: str, value: float) -> str:
    """Format one scalar, with the unit that its name implies."""
    if name == "eta":
        return str(datetime.timedelta(seconds=int(value)))
    if name in ("time", "data_time"):
        return f"{value * 1000:.2f}ms"
    if name == MEMORY:
        return f"{value:.0f}MB"
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e5):
        return f"{value:.3e}"
    return f"{value:.4f}"


def format_bytes(size: float) -> str:
    """Return `1.5 GB`."""
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} PB"
