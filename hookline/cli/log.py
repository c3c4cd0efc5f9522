"""`hookline log`: what runs have logged, as a table, as curves in the terminal and as a picture."""

from __future__ import annotations

import argparse
import shutil
from itertools import cycle
from pathlib import Path

from hookline.cli.arguments import UsageError
from hookline.cli.output import print_table
from hookline.engine.metrics import better_when
from hookline.errors import suggest
from hookline.events.chart import text_chart
from hookline.events.format import format_value
from hookline.events.logs import escaped
from hookline.events.read import Curve, matching, read_curves

STYLES = ("-", "--", "-.", ":")  # of two curves that are the same both can be seen

Runs = dict[str, dict[str, Curve]]


def run(args: argparse.Namespace) -> int:
    runs = dict(zip(_labels(args.runs), map(read_curves, args.runs), strict=True))
    drawn = args.metric or (["loss"] if any(matching("loss", curves) for curves in runs.values()) else [])
    wanted = {metric: _chosen(metric, runs) for metric in drawn}
    if not args.metric:
        _print_summary(runs)
    for metric, curves in wanted.items():
        print(f"\n{metric}")
        print(text_chart(curves, width=min(max(shutil.get_terminal_size().columns - 16, 30), 100)))
    if args.plot and wanted:
        _draw(wanted, Path(args.plot))
        print(f"\n{args.plot}")
    return 0


def _labels(paths: list[str]) -> list[str]:
    """The runs' folder names, or their whole paths where these are not enough to tell them apart."""
    names = [path.parent.name if path.suffix == ".jsonl" else path.name for path in (Path(given).resolve() for given in paths)]
    return names if len(set(names)) == len(names) else list(paths)


def _chosen(metric: str, runs: Runs) -> dict[str, Curve]:
    """The curves of a metric in all runs that have it, by what to call them."""
    found = {(label, name): curves[name] for label, curves in runs.items() for name in matching(metric, curves)}
    if not found:
        known = sorted({name for curves in runs.values() for name in curves})
        raise UsageError(f"no run has logged {metric!r}{suggest(metric, known)}")
    several = len(runs) > 1
    return {f"{name} of {label}" if several else name: curve for (label, name), curve in found.items()}


def _print_summary(runs: Runs) -> None:
    rows = []
    for label, curves in runs.items():
        for name, curve in curves.items():
            rule = better_when(name.partition("/")[2])
            best = "" if rule is None else _point((min if rule == "less" else max)(curve, key=lambda point: point[1]), name)
            rows.append((*([label] if len(runs) > 1 else []), escaped(name), _point(curve[-1], name), best))
    if rows:
        print_table(rows, headers=(*(["run"] if len(runs) > 1 else []), "scalar", "last (iteration)", "best (iteration)"))


def _point(point: tuple[int, float], name: str) -> str:
    bare = name.removeprefix("train/")
    return f"{format_value(bare, point[1])} ({point[0]})"


def _draw(wanted: dict[str, dict[str, Curve]], path: Path) -> None:
    from matplotlib.figure import Figure  # half a second that the table need not wait for

    figure = Figure(figsize=(8, 4 * len(wanted)), layout="constrained")
    for axes, (metric, curves) in zip(figure.subplots(len(wanted), squeeze=False)[:, 0], wanted.items(), strict=True):
        for (label, curve), style in zip(curves.items(), cycle(STYLES), strict=False):
            axes.plot([x for x, _ in curve], [y for _, y in curve], style, label=label, marker="." if len(curve) < 30 else None)
        axes.set(title=metric, xlabel="iteration")
        axes.grid(alpha=0.3)
        axes.legend()
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # a folder that is not there, a suffix that is no picture's
        raise UsageError(f"--plot {path}: {error}") from error
