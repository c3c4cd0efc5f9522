"""The end of a run in a few lines: speed, results and files."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from hookline.duration import format_duration
from hookline.events.format import format_scalars, format_value
from hookline.report.names import REPORT

MAX_BEST = 2  # metrics with a best result, a line each
MIN_SHARE = 0.1  # of the run, for validations and saves
LABEL_WIDTH = len("checkpoints")  # the longest label
TEXT_WIDTH = 80 - LABEL_WIDTH - 2  # of a row in a narrow terminal
SEAMS = {"validate": "validation", "save": "saving"}

Rows = list[tuple[str, str]]


def describe_end(runner: Any) -> Rows:
    """Return at most eight rows of a label and a text about a run that has ended.

    Facts that are not known are left out.
    """
    rows: Rows = []
    speed = _speed(runner)
    if speed:
        rows.append(("speed", speed))
    overhead = _overhead(runner)
    if overhead:
        rows.append(("overhead", overhead))
    if runner.metrics:
        parts = [format_scalars({name: value}) for name, value in runner.metrics.items()]
        rows.append(("last", _join(parts, "  ")))
    for metric, best in list(runner.best.items())[:MAX_BEST]:
        value = format_value(metric, best["value"])
        where = f"in epoch {best['epoch'] + 1} (iteration {best['iter']})"
        rows.append(("best", f"{metric} {value} {where}"))
    names = checkpoint_names(runner)
    if names:
        rows.append(("checkpoints", _some_names(names)))
    if any(hook.name == "ReportHook" for hook in runner.hooks):  # It writes the page at the end.
        rows.append(("report", str(runner.work_dir / REPORT)))
    if runner.work_dir.is_dir():
        rows.append(("files", f"{runner.work_dir}/"))
    return rows


def describe_stop(runner: Any, seconds: float) -> str:
    """Return the reason of the end and the length of the run in words.

    Args:
        runner: The runner.
        seconds: The time since this process began or resumed the training.
    """
    count = "1 iteration" if runner.iter == 1 else f"{runner.iter} iterations"
    first = runner.sites.costs.first
    if first:
        count += f", {max(runner.iter - first, 0)} of them"
    return f"{runner.stop_reason}, after {count} in {format_duration(seconds)}"


def align_rows(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line for each row, with the texts below each other."""
    return [f"{label.ljust(LABEL_WIDTH)}  {text}" for label, text in rows]


def checkpoint_names(runner: Any) -> list[str]:
    """Return the names of the checkpoints of a run, the oldest first."""
    return [name for entry in runner.checkpointer.store.entries() for name in entry.names]


def _speed(runner: Any) -> str:
    """Describe the recent iterations."""
    times = _recent(runner, "time")
    if not times:
        return ""
    speed = f"{_milliseconds(median(times))} an iteration"
    waits = _recent(runner, "data_time")
    if waits and sum(times):
        speed += f", {sum(waits) / sum(times):.0%} waiting for data"
    return speed


def _overhead(runner: Any) -> str:
    """Describe the shares of validations and saves in the run, unless they are small."""
    costs = runner.sites.costs
    parts = []
    for name, label in SEAMS.items():
        share = costs.seams[name].total / costs.seconds()
        if share >= MIN_SHARE:
            parts.append(f"{label} {share:.0%} of the run")
    return ", ".join(parts)


def _recent(runner: Any, name: str) -> list[float]:
    return [each.value for each in runner.events.history(name)]


def _milliseconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _some_names(names: list[str]) -> str:
    """Return the names; if there are many, first the last and best ones, then the newest."""
    if len(", ".join(names)) > TEXT_WIDTH:
        newest_first = names[::-1]
        special = [name for name in newest_first if name.startswith(("best", "last"))]
        names = special + [name for name in newest_first if name not in special]
    return _join(names, ", ")


def _join(parts: Sequence[str], separator: str) -> str:
    """Return the parts that fit in a row, at least one, and the number of the others."""
    count = len(parts)
    shown = separator.join(parts)
    while len(shown) > TEXT_WIDTH and count > 1:
        count -= 1
        shown = f"{separator.join(parts[:count])} and {len(parts) - count} more"
    return shown
