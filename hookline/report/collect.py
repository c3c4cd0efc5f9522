"""From a run's folder to plain data: everything that a page shows of it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.errors import CheckpointError
from hookline.engine.metrics import better_when
from hookline.errors import HooklineError
from hookline.events.describe import flat
from hookline.report.curves import MOST_POINTS, CurveReader
from hookline.report.names import CONFIG, COSTS, LOG, TEXT_LOG, TIMELINE
from hookline.report.pictures import Picture, embedded, find_pictures
from hookline.report.summary import summary
from hookline.report.timeline import read_timeline, sessions, shown, state_of
from hookline.report.warnings import WarningReader
from hookline.version import __version__

LARGEST = 1_000_000  # bytes of a config or cost file
DEEPEST = 50  # levels of a config
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # plain values only, either of them

Pictures = Callable[[dict[str, list[Picture]]], list[dict[str, Any]]]


def is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (LOG, TIMELINE))


def collect(folders: Sequence[str | Path]) -> dict[str, Any]:
    """All that a page shows of these runs; HooklineError if one of them is none."""
    readers = [RunReader(folder) for folder in map(Path, folders)]
    for reader, name in zip(readers, _names(readers), strict=True):
        reader.name = name
    return together([reader.read(most=MOST_POINTS * 2 // (len(readers) + 1)) for reader in readers])


def together(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The data of a page: runs, and where their configs differ."""
    return {"made": time.time(), "version": __version__, "runs": runs, "differences": _differences(runs)}


class RunReader:
    """Reads a run's folder, again and again if wanted: of what only grows it reads what is new."""

    def __init__(self, folder: Path) -> None:
        folder = folder.parent if folder.name == LOG else folder
        if not is_run(folder):
            raise HooklineError(f"{folder}: there is no {LOG} and no {TIMELINE}; give the work directory of a run")
        self.folder = folder
        self.name = folder.resolve().name
        self._curves = CurveReader(folder / LOG)
        self._warnings = WarningReader(folder / TEXT_LOG)

    def version(self) -> str:
        """A text that changes when there is something new in the folder."""
        return "|".join(_stamp(self.folder / name) for name in (LOG, TIMELINE, TEXT_LOG, COSTS, CONFIG, "checkpoints.json"))

    def read(self, pictures: Pictures = embedded, most: int = MOST_POINTS) -> dict[str, Any]:
        """Everything, as values that JSON can hold."""
        self._curves.update()
        self._warnings.update()
        curves, rows = self._curves, read_timeline(self.folder / TIMELINE)
        parts = sessions(rows)
        state = state_of(parts, curves.last_time)
        thinned = curves.thinned(most)
        config = _text(self.folder / CONFIG)
        began = parts[0].began if parts else curves.first_time or 0.0
        about = next((row for row in reversed(rows) if row["what"] == "start"), {})
        git = next((row for row in reversed(rows) if row["what"] == "git"), {})
        checkpoints, trouble = _checkpoints(self.folder, about.get("checkpoints"))
        data = {
            "name": self.name,
            "folder": str(self.folder),
            "state": {"name": state.name, "why": state.why},
            "iter": max(curves.last_iter, max((int(row.get("iter", 0)) for row in parts[-1].rows), default=0) if parts else 0),
            "epoch": curves.last_epoch,
            "max_iters": about.get("max_iters"),
            "max_epochs": about.get("max_epochs"),
            "curves": thinned,
            "rows": curves.rows,
            "last": {name: curve["y"][-1] for name, curve in thinned.items() if curve["y"]},
            "best": _best(thinned),
            "sessions": shown(parts, curves.last_time, state.name == "running"),
            "checkpoints": checkpoints,
            "pictures": pictures(find_pictures(self.folder)),
            "costs": _costs(self.folder / COSTS),
            "config": config,
            "settings": _settings(config),
            "warnings": [*trouble, *_not_finite(thinned), *self._warnings.since(began)],
            "warnings_left_out": self._warnings.more,
        }
        data["summary"] = summary(data, about, git)
        return data


def _names(readers: list[RunReader]) -> list[str]:
    """The folders' names, or as much more of their paths as tells them apart."""
    paths = [reader.folder.resolve() for reader in readers]
    for length in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path.name} ({number})" for number, path in enumerate(paths, 1)]  # the same run twice


def _stamp(path: Path) -> str:
    try:
        about = os.stat(path)
    except OSError:
        return "-"
    return f"{about.st_size}.{about.st_mtime_ns}"


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST).decode(errors="replace")
    except OSError:
        return ""


def _costs(path: Path) -> dict[str, Any] | None:
    try:
        table = json.loads(_text(path))
    except (ValueError, RecursionError):
        return None
    return table if isinstance(table, dict) and isinstance(table.get("hooks"), list) else None


def _settings(config: str) -> dict[str, str]:
    """A config's values by dotted name; none for a text with anchors or depths that ours never have and that take forever."""
    depth = 0
    try:
        for event in yaml.parse(config, Loader=LOADER):
            depth += isinstance(event, yaml.events.CollectionStartEvent) - isinstance(event, yaml.events.CollectionEndEvent)
            if depth > DEEPEST or isinstance(event, yaml.events.AliasEvent):
                return {}
        values = yaml.load(config, Loader=LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {key: str(value) for key, value in flat(values).items()} if isinstance(values, dict) else {}


def _differences(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The settings that are not the same in all runs; None where a run does not have one."""
    keys = dict.fromkeys(key for run in runs for key in run["settings"])
    rows = [{"key": key, "values": [run["settings"].get(key) for run in runs]} for key in keys]
    return [row for row in rows if len(set(row["values"])) > 1]


def _checkpoints(folder: Path, elsewhere: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the manifest lists, newest first, and what is wrong with it."""
    place = (
        Path(elsewhere) if isinstance(elsewhere, str) and Path(elsewhere).is_dir() and not any(folder.glob("checkpoints.json")) else folder
    )
    try:
        entries = CheckpointStore(place).entries()
    except CheckpointError as error:
        return [], [{"time": time.time(), "level": "error", "text": str(error)}]
    listed = [
        {
            "names": list(entry.names),
            "epoch": entry.epoch,
            "iter": entry.step,
            "size": entry.size,
            "time": entry.time,
            "metrics": {name: float(f"{value:.6g}") if abs(value) < 1e300 else str(value) for name, value in entry.metrics.items()},
            "note": "" if entry.resumable else "its weights are not finite" if not entry.finite else "for looking at only",
        }
        for entry in reversed(entries)
    ]
    return listed, []


def _best(curves: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The best value of each metric of validation whose name tells which way is better, and where it was reached."""
    best = {}
    for name, curve in curves.items():
        rule = better_when(re.sub(r"^\w+/", "", name))
        if name.startswith("val/") and rule is not None and curve["y"]:
            value = (min if rule == "less" else max)(curve["y"])
            best[name] = {"value": value, "iter": curve["x"][curve["y"].index(value)]}
    return best


def _not_finite(curves: dict[str, Any]) -> list[dict[str, Any]]:
    found = [(name, curve["not_finite"]) for name, curve in curves.items() if "not_finite" in curve]
    texts = [f"{name} was not a finite number {about['count']} times, first at iteration {about['first']}" for name, about in found]
    return [{"time": None, "level": "warning", "text": text} for text in texts]
