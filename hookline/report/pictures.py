"""The pictures that hooks have left, by series and in order."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from hookline.report.names import PICTURES

BUDGET = 3_000_000  # bytes of pictures in a page
MOST_FILES = 20_000  # that are looked at


class Picture(NamedTuple):
    """A file of a series such as `GradientFlowHook/history`."""

    series: str
    step: int
    path: Path
    size: int


def find_pictures(folder: Path) -> dict[str, list[Picture]]:
    """All `visualizations/<series>/step_<n>.png` of a run, by series; links are not followed."""
    root, found, seen = folder / PICTURES, dict[str, list[Picture]](), 0
    for where, folders, files in os.walk(root):
        folders.sort()
        series = Path(where).relative_to(root).as_posix()
        for name in files:
            seen += 1
            path, number = Path(where, name), re.fullmatch(r"step_(\d{1,15})\.png", name)
            if number and not path.is_symlink():
                found.setdefault(series, []).append(Picture(series, int(number[1]), path, path.stat().st_size))
        if seen > MOST_FILES:
            break
    return {series: sorted(found[series], key=lambda picture: picture.step) for series in sorted(found)}


def embedded(found: dict[str, list[Picture]], budget: int = BUDGET) -> list[dict[str, Any]]:
    """The series with their pictures inside; where there are too many bytes, each series keeps a part, evenly spread."""
    result = []
    left, series_left = budget, len(found)
    for series, pictures in sorted(found.items(), key=lambda item: sum(picture.size for picture in item[1])):
        kept = _within(pictures, left // series_left)
        left -= sum(picture.size for picture in kept)
        series_left -= 1
        frames = [{"step": picture.step, "src": _data(picture.path)} for picture in kept]
        result.append({"name": series, "frames": frames, "left_out": len(pictures) - len(kept)})
    return sorted(result, key=lambda each: str(each["name"]))


def _within(pictures: list[Picture], budget: int) -> list[Picture]:
    """The last one and as many others, evenly spread, as there is room for."""
    count = len(pictures)
    while count > 0:
        chosen = [pictures[round((len(pictures) - 1) * (index + 1) / count)] for index in range(-1 if count > 1 else 0, count)]
        kept = list(dict.fromkeys(chosen))
        if sum(picture.size for picture in kept) <= budget:
            return kept
        count = count * 3 // 4
    return []


def _data(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
