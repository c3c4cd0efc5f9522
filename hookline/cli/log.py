"""`hookline log`: show the logged scalars of runs as a table, as text charts and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from hookline.cli.errors import CommandLineError
from hookline.cli.output import chart_columns, print_json, print_table
from hookline.cli.printing import show
from hookline.errors import suggest
from hookline.events.chart import text_chart
from hookline.events.format import format_value
from hookline.events.read import Curve, RunLog, matching
from hookline.metrics.direction import infer_direction
from hookline.printable import escaped

LINE_STYLES = ("-", "--", "-.", ":")  # Different styles keep equal curves visible.
MAX_MARKED_POINTS = 30

Curves = dict[str, Curve]


def run(runs: Sequence[str], metrics: Sequence[str], plot: str | None, as_json: bool) -> int:
    """Print a table of all scalars, and charts of the chosen metrics."""
    logs: dict[str, RunLog] = {}
    for label, path in zip(_run_labels(runs), runs, strict=True):
        logs[label] = RunLog(path)
    by_epoch = any(log.by_epoch for log in logs.values())
    axis = "epoch" if by_epoch else "iteration"
    shown = {
        label: log.curves_over_epochs() if by_epoch else log.curves() for label, log in logs.items()
    }
    charts = {
        metric: _select_curves(metric, shown) for metric in metrics or _default_metrics(shown)
    }
    if plot is not None and charts:
        _draw(charts, axis, Path(plot))
    if as_json:
        by_run = {label: log.curves() for label, log in logs.items()}
        print_json(_restrict(by_run, metrics) if metrics else by_run)
        return 0
    if not metrics:
        _print_summary(logs)
    for metric, curves in charts.items():
        show(f"\n{metric} by {axis}")
        show(text_chart(curves, width=chart_columns()))
    if plot is not None and charts:
        show(f"\n{plot}")
    return 0


def _restrict(logs: dict[str, Curves], metrics: Sequence[str]) -> dict[str, Curves]:
    """Return only the curves of the chosen metrics."""
    restricted: dict[str, Curves] = {}
    for label, curves in logs.items():
        names = [name for metric in metrics for name in matching(metric, curves)]
        restricted[label] = {name: curves[name] for name in names}
    return restricted


def _run_labels(paths: Sequence[str]) -> list[str]:
    """Return the names of the runs' directories, or the paths if two names are equal."""
    names = []
    for path in paths:
        resolved = Path(path).resolve()
        if resolved.suffix == ".jsonl":
            resolved = resolved.parent
        names.append(resolved.name)
    unique = len(set(names)) == len(names)
    return names if unique else list(paths)


def _default_metrics(logs: dict[str, Curves]) -> list[str]:
    has_loss = any(matching("loss", curves) for curves in logs.values())
    return ["loss"] if has_loss else []


def _select_curves(metric: str, logs: dict[str, Curves]) -> Curves:
    """Return the curves of a metric in all runs, by their labels."""
    selected: Curves = {}
    for run, curves in logs.items():
        for name in matching(metric, curves):
            label = f"{name} of {run}" if len(logs) > 1 else name
            selected[label] = curves[name]
    if not selected:
        known = {name for curves in logs.values() for name in curves}
        raise CommandLineError(
            f"no run has logged {metric!r}", parameter="--metric", suggestion=suggest(metric, known)
        )
    return selected


def _print_summary(logs: dict[str, RunLog]) -> None:
    headers = ["scalar", "last", "best"]
    rows = []
    for run, log in logs.items():
        for name, curve in log.curves().items():
            axis = log.axis(name)
            last = _format_point(name, curve[-1], axis)
            row = [escaped(name), last, _format_best(name, curve, axis)]
            if len(logs) > 1:
                row.insert(0, run)
            rows.append(row)
    if len(logs) > 1:
        headers.insert(0, "run")
    if rows:
        print_table(rows, headers)


def _format_best(name: str, curve: Curve, axis: str) -> str:
    """Return the best point, or nothing if the name does not imply a direction."""
    direction = infer_direction(name.partition("/")[2])
    if direction is None:
        return ""
    choose = min if direction == "less" else max
    return _format_point(name, choose(curve, key=lambda point: point[1]), axis)


def _format_point(name: str, point: tuple[float, float], axis: str) -> str:
    step, value = point
    return f"{format_value(name.removeprefix('train/'), value)} ({axis} {step:g})"


def _draw(charts: dict[str, Curves], axis: str, path: Path) -> None:
    from matplotlib.figure import Figure  # slow to import; the table does not need it

    figure = Figure(figsize=(8, 4 * len(charts)), layout="constrained")
    rows = figure.subplots(len(charts), squeeze=False)[:, 0]
    for axes, (metric, curves) in zip(rows, charts.items(), strict=True):
        for (label, curve), style in zip(curves.items(), cycle(LINE_STYLES), strict=False):
            positions, values = zip(*curve, strict=True)
            marker = "." if len(curve) < MAX_MARKED_POINTS else None
            axes.plot(positions, values, style, label=label, marker=marker)
        axes.set(title=metric, xlabel=axis)
        axes.grid(alpha=0.3)
        axes.legend()
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # a missing directory, or an unknown suffix
        raise CommandLineError(f"--plot {path}: {error}", parameter="--plot") from error
