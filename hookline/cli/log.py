"""`hookline log`: show the logged scalars of runs as a table, as text charts and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from hookline.cli.errors import CommandLineError
from hookline.cli.output import chart_columns, print_table
from hookline.errors import suggest
from hookline.events.chart import text_chart
from hookline.events.format import format_value
from hookline.events.logs import escaped
from hookline.events.read import Curve, matching, read_curves
from hookline.metrics.direction import infer_direction

LINE_STYLES = ("-", "--", "-.", ":")  # Different styles keep equal curves visible.
MAX_MARKED_POINTS = 30

Curves = dict[str, Curve]


def run(runs: Sequence[str], metrics: Sequence[str], plot: str | None) -> int:
    """Print a table of all scalars, and charts of the chosen metrics."""
    logs: dict[str, Curves] = {}
    for label, path in zip(_run_labels(runs), runs, strict=True):
        logs[label] = read_curves(path)
    charts = {metric: _select_curves(metric, logs) for metric in metrics or _default_metrics(logs)}
    if not metrics:
        _print_summary(logs)
    for metric, curves in charts.items():
        print(f"\n{metric}")
        print(text_chart(curves, width=chart_columns()))
    if plot is not None and charts:
        _draw(charts, Path(plot))
        print(f"\n{plot}")
    return 0


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


def _print_summary(logs: dict[str, Curves]) -> None:
    headers = ["scalar", "last (iteration)", "best (iteration)"]
    rows = []
    for run, curves in logs.items():
        for name, curve in curves.items():
            row = [escaped(name), _format_point(name, curve[-1]), _format_best(name, curve)]
            if len(logs) > 1:
                row.insert(0, run)
            rows.append(row)
    if len(logs) > 1:
        headers.insert(0, "run")
    if rows:
        print_table(rows, headers)


def _format_best(name: str, curve: Curve) -> str:
    """Return the best point, or nothing if the name does not imply a direction."""
    direction = infer_direction(name.partition("/")[2])
    if direction is None:
        return ""
    choose = min if direction == "less" else max
    return _format_point(name, choose(curve, key=lambda point: point[1]))


def _format_point(name: str, point: tuple[int, float]) -> str:
    iteration, value = point
    return f"{format_value(name.removeprefix('train/'), value)} ({iteration})"


def _draw(charts: dict[str, Curves], path: Path) -> None:
    from matplotlib.figure import Figure  # slow to import; the table does not need it

    figure = Figure(figsize=(8, 4 * len(charts)), layout="constrained")
    rows = figure.subplots(len(charts), squeeze=False)[:, 0]
    for axes, (metric, curves) in zip(rows, charts.items(), strict=True):
        for (label, curve), style in zip(curves.items(), cycle(LINE_STYLES), strict=False):
            iterations, values = zip(*curve, strict=True)
            marker = "." if len(curve) < MAX_MARKED_POINTS else None
            axes.plot(iterations, values, style, label=label, marker=marker)
        axes.set(title=metric, xlabel="iteration")
        axes.grid(alpha=0.3)
        axes.legend()
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # a missing directory, or an unknown suffix
        raise CommandLineError(f"--plot {path}: {error}", parameter="--plot") from error
