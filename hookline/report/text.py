"""Runs as text, for the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.events.chart import text_chart
from hookline.events.read import matching
from hookline.printable import escaped
from hookline.report.pictures import Picture
from hookline.report.run_list import RunList

POLL_PERIOD_S = 1.0
CHARTS = ("loss", "accuracy")
MAX_WARNINGS = 5


def follow(folder: Path, width: int) -> Iterator[str]:
    """Yield the runs of a folder as text whenever something changes, while a run is running."""
    run_list = RunList(folder)
    before = None
    while True:
        runs = run_list.runs()
        state = [(run["id"], run["version"]) for run in runs]
        if state != before:
            before = state
            yield _render(run_list, runs, width)
        if not any(run["state"] == "running" for run in runs):
            return
        time.sleep(POLL_PERIOD_S)


def _render(run_list: RunList, runs: list[dict[str, Any]], width: int) -> str:
    if not runs:
        return f"no runs in {run_list.folder}"
    lines = []
    for run in runs:
        text = escaped(f"{run['name']}  {run['text']}").rstrip()
        lines.append(f"{run['state']:<9} {text}")
    for run in run_list.data([runs[0]["id"]], lambda _: _no_pictures)["runs"]:
        lines += _details(run, width)
    return "\n".join(lines)


def _no_pictures(found: dict[str, list[Picture]]) -> list[dict[str, Any]]:
    return []


def _details(run: dict[str, Any], width: int) -> list[str]:
    lines = [""]
    for label, text in run["summary"]:
        lines.append(f"{label:<9} {escaped(text.splitlines()[0])}")
    for metric in CHARTS:
        curves = {}
        for name in matching(metric, run["curves"]):
            curve = run["curves"][name]
            curves[escaped(name)] = list(zip(curve["x"], curve["y"], strict=True))
        if any(curves.values()):
            lines += ["", metric, text_chart(curves, width=width)]
    warnings = [each for each in run["warnings"] if each["text"]]
    if warnings:
        lines.append("")
    for each in warnings[-MAX_WARNINGS:]:
        lines.append(f"{each['level']}: {escaped(each['text'].splitlines()[0])}")
    return lines
