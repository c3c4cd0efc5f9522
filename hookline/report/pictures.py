"""The pictures of a run, by series and in order."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from hookline.report.names import PICTURES, RECORDS

MAX_EMBEDDED_BYTES = 3_000_000  # of all pictures in a page
MAX_FILES = 20_000  # that are examined


class Picture(NamedTuple):
    """A file of a series such as `GradientFlowHook/history`."""

    series: str
    step: int
    path: Path
    size: int


def find_pictures(folder: Path) -> dict[str, list[Picture]]:
    """Return the pictures of hooks and recorded images, by series. Links are not followed."""
    found = {**_find_in(folder / RECORDS), **_find_in(folder / PICTURES)}
    return dict(sorted(found.items()))


def _find_in(root: Path) -> dict[str, list[Picture]]:
    """Return all `<series>/step_<n>.png` in a folder."""
    found: dict[str, list[Picture]] = {}
    examined = 0
    for where, folders, files in os.walk(root):
        folders.sort()
        series = Path(where).relative_to(root).as_posix()
        for name in files:
            path = Path(where, name)
            number = re.fullmatch(r"step_(\d{1,15})\.png", name)
            if number and not path.is_symlink():
                picture = Picture(series, int(number[1]), path, path.stat().st_size)
                found.setdefault(series, []).append(picture)
        examined += len(files)
        if examined > MAX_FILES:
            break
    for pictures in found.values():
        pictures.sort(key=lambda picture: picture.step)
    return found


def embed_pictures(
    found: dict[str, list[Picture]], budget: int = MAX_EMBEDDED_BYTES
) -> list[dict[str, Any]]:
    """Return the series with their pictures as data.

    If the pictures have more bytes than the budget, each series keeps a part, evenly spread.
    """
    result = []
    left = budget
    by_size = sorted(found.items(), key=lambda item: _total_size(item[1]))
    for index, (series, pictures) in enumerate(by_size):
        kept = _within(pictures, left // (len(by_size) - index))
        left -= _total_size(kept)
        frames = [{"step": picture.step, "src": _data_url(picture.path)} for picture in kept]
        result.append({"name": series, "frames": frames, "left_out": len(pictures) - len(kept)})
    return sorted(result, key=lambda each: str(each["name"]))


def _within(pictures: list[Picture], budget: int) -> list[Picture]:
    """Return the last picture, and as many others, evenly spread, as the budget allows."""
    count = len(pictures)
    while count > 0:
        kept = _spread(pictures, count)
        if _total_size(kept) <= budget:
            return kept
        count = count * 3 // 4
    return []


def _spread(pictures: list[Picture], count: int) -> list[Picture]:
    """Return about `count` pictures: the last one, and for more than one the first one as well."""
    start = -1 if count > 1 else 0
    last = len(pictures) - 1
    places = [round(last * (index + 1) / count) for index in range(start, count)]
    return [pictures[place] for place in dict.fromkeys(places)]


def _total_size(pictures: list[Picture]) -> int:
    return sum(picture.size for picture in pictures)


def _data_url(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
