"""The k best checkpoints for each metric: which ones to keep, and the file that lists them."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from hookline.checkpoint.files import FileSystem, read_regular, set_aside
from hookline.checkpoint.names import safe_name
from hookline.files import replace_file

LIST = "best.json"
FORMAT = "hookline best checkpoints 1"
RANKED = re.compile(r"best_.+_iter_\d+\.pth")

log = logging.getLogger(__name__)


class BestFile(TypedDict):
    """A checkpoint among the best ones, as plain data for checkpoints and JSON."""

    file: str
    value: float
    epoch: int
    iter: int


class BestFiles(TypedDict):
    """The best checkpoints by one metric, oldest first."""

    rule: str  # `greater` if higher values are better, or `less`
    checkpoints: list[BestFile]


def name_best(metric: str, value: float, iteration: int) -> str:
    """Return the name of one of the best checkpoints: `best_accuracy_0.9812_iter_350.pth`."""
    return f"{safe_name(f'best_{metric}_{value:.4g}_iter_{iteration}')}.pth"


def find_best_names(names: Iterable[str]) -> list[str]:
    """Return the names of the best checkpoint of each metric, without the others in `best.json`."""
    return [name for name in names if name.startswith("best_") and not RANKED.fullmatch(name)]


def names_of(best: Mapping[str, BestFiles]) -> list[str]:
    """Return the names of the best checkpoints of all metrics."""
    names = []
    for files in best.values():
        names += [each["file"] for each in files["checkpoints"]]
    return names


def admit(best: BestFiles, new: BestFile, limit: int) -> BestFiles | None:
    """Return the best checkpoints with a new one, or None if it is not among them.

    If there are `limit` others, it must be better than the worst. `drop_worst` removes that one.
    """
    if not math.isfinite(new["value"]):
        return None
    files = [each for each in best["checkpoints"] if each["file"] != new["file"]]
    score = _score(best["rule"])
    if len(files) >= limit and score(new) <= min(map(score, files)):
        return None
    return BestFiles(rule=best["rule"], checkpoints=[*files, new])


def drop_worst(best: BestFiles, limit: int) -> tuple[BestFiles, list[str]]:
    """Return the best checkpoints up to a limit, and the names of the others.

    Of equally bad ones the oldest is dropped first.
    """
    files = list(best["checkpoints"])
    dropped = []
    while len(files) > limit:
        worst = min(files, key=_score(best["rule"]))
        files.remove(worst)
        dropped.append(worst["file"])
    return BestFiles(rule=best["rule"], checkpoints=files), dropped


def drop_worst_of_each(
    best: Mapping[str, BestFiles], limit: int
) -> tuple[dict[str, BestFiles], list[str]]:
    """Return the best checkpoints of each metric up to a limit, and the names of the others.

    The names of two metrics, such as `a/b` and `a_b`, may give the same file.
    """
    kept = {}
    dropped = []
    for metric, files in best.items():
        kept[metric], worst = drop_worst(files, limit)
        dropped += worst
    needed = names_of(kept)
    return kept, [name for name in dropped if name not in needed]


def write_list(directory: Path, best: Mapping[str, BestFiles]) -> None:
    """Write `best.json`: the files of each metric, the best one first.

    It only informs people and other programs, so a failure is logged and stops nothing.
    """
    metrics = {}
    for metric, files in best.items():
        ordered = sorted(files["checkpoints"], key=_score(files["rule"]), reverse=True)
        metrics[metric] = {"rule": files["rule"], "checkpoints": ordered}
    text = json.dumps({"format": FORMAT, "metrics": metrics}, indent=2) + "\n"
    path = directory / LIST
    try:
        if path.exists() and not _is_ours(path):
            kept = set_aside(FileSystem(), path)
            log.warning("%s: not a list of checkpoints; it is now %s", path, kept.name)
        replace_file(path, text, durable=True)
    except OSError as error:
        log.warning("%s: not written: %s", path, error.strerror or error)


def _score(rule: str) -> Callable[[BestFile], float]:
    """Return a function of which higher values are better."""
    sign = 1 if rule == "greater" else -1
    return lambda file: sign * file["value"]


def _is_ours(path: Path) -> bool:
    try:
        content = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT
