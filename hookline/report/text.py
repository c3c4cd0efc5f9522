"""Runs in the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.events.chart import text_chart
from hookline.events.logs import escaped
from hookline.events.read import matching
from hookline.report.watched import Watched

PERIOD = 1.0  # seconds
CHARTS = ("loss", "accuracy")


def follow(folder: Path, width: int) -> Iterator[str]:
    """The runs of a folder as text, a new one whenever something has changed; it ends when no run is running."""
    watched, before = Watched(folder), None
    while True:
        runs = watched.runs()
        state = [(run["id"], run["version"]) for run in runs]
        if state != before:
            before = state
            yield _screen(watched, runs, width)
        if not any(run["state"] == "running" for run in runs):
            return
        time.sleep(PERIOD)


def _screen(watched: Watched, runs: list[dict[str, Any]], width: int) -> str:
    if not runs:
        return f"no runs in {watched.folder}"
    lines = [f"{run['state']:<9} {escaped(run['name'])}  {run['text']}".rstrip() for run in runs]
    first = watched.data([runs[0]["id"]], lambda name: lambda found: [])["runs"]
    return "\n".join([*lines, *(_details(first[0], width) if first else [])])


def _details(run: dict[str, Any], width: int) -> list[str]:
    lines = ["", *(f"{label:<9} {escaped(line)}" for label, text in run["summary"] for line in text.splitlines()[:1])]
    for metric in CHARTS:
        found = matching(metric, run["curves"])
        curves = {escaped(name): list(zip(run["curves"][name]["x"], run["curves"][name]["y"], strict=True)) for name in found}
        if any(curves.values()):
            lines += ["", metric, text_chart(curves, width=width)]
    if run["warnings"]:
        lines += ["", *(f"{each['level']}: {escaped(each['text'].splitlines()[0])}" for each in run["warnings"][-5:] if each["text"])]
    return lines
