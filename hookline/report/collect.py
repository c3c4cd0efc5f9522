"""Collect the data of a page from the work directories of runs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hookline.checkpoint.names import LEDGERS
from hookline.errors import HooklineError, Suggestion
from hookline.metrics.direction import infer_direction
from hookline.report.curves import MAX_POINTS, CurveReader
from hookline.report.index import load_index, save_index
from hookline.report.names import (
    CONFIG,
    COSTS,
    DESCRIPTION,
    INDEX,
    LOG,
    MIRROR,
    TEXT_LOG,
    TIMELINE,
)
from hookline.report.pictures import Picture, embed_pictures, find_pictures
from hookline.report.run_files import (
    Data,
    parse_settings,
    read_checkpoints,
    read_costs,
    read_object,
    read_text,
)
from hookline.report.summary import summarize
from hookline.report.timeline import (
    Row,
    Session,
    describe_sessions,
    find_sessions,
    infer_state,
    read_timeline,
)
from hookline.report.warnings import WarningReader
from hookline.version import __version__

PresentPictures = Callable[[dict[str, list[Picture]]], list[Data]]


def is_run(folder: Path) -> bool:
    """Return whether a folder is the work directory of a run."""
    return any((folder / name).is_file() for name in (LOG, TIMELINE))


def collect(folders: Sequence[str | Path]) -> Data:
    """Return the data of a page with these runs.

    Raises:
        HooklineError: If a folder is not the work directory of a run.
    """
    readers = [RunReader(Path(folder)) for folder in folders]
    for reader, name in zip(readers, _short_names(readers), strict=True):
        reader.name = name
        with contextlib.suppress(OSError):  # The folder may be read-only.
            reader.update_index()
    limit = MAX_POINTS * 2 // (len(readers) + 1)
    return page_data([reader.read(limit=limit) for reader in readers])


def page_data(runs: list[Data]) -> Data:
    """Return the data of a page: runs, and the differences of their configs."""
    return {
        "made": time.time(),
        "version": __version__,
        "runs": runs,
        "differences": _differences(runs),
    }


class RunReader:
    """A reader of the work directory of a run. Of the logs it reads only new lines each time."""

    def __init__(self, folder: Path) -> None:
        if folder.name == LOG:
            folder = folder.parent
        if not is_run(folder):
            raise HooklineError(
                f"has neither {LOG} nor {TIMELINE}",
                file=str(folder),
                suggestion=Suggestion(advice="give the work directory of a run"),
            )
        self.folder = folder
        self.name = folder.resolve().name
        self._curves = CurveReader(folder / LOG)
        self._warnings = WarningReader(folder / TEXT_LOG)
        load_index(folder / INDEX, self._curves, self._warnings)

    def update_index(self) -> None:
        """Read the new lines of the logs, and write the index if there are many."""
        self._curves.update()
        self._warnings.update()
        save_index(self.folder / INDEX, self._curves, self._warnings)

    def version(self) -> str:
        """Return a text that changes when there is something new in the folder."""
        names = (LOG, TIMELINE, TEXT_LOG, COSTS, CONFIG, *LEDGERS)
        return "|".join(_stamp(self.folder / name) for name in names)

    def read(self, pictures: PresentPictures = embed_pictures, limit: int = MAX_POINTS) -> Data:
        """Return everything that a page shows of the run, as values that JSON can hold.

        Args:
            pictures: Turns pictures into the form that the page needs.
            limit: The number of points of all curves.
        """
        self._curves.update()
        self._warnings.update()
        rows = read_timeline(self.folder / TIMELINE)
        sessions = find_sessions(rows)
        state = infer_state(sessions, self._curves.last_time)
        about = _last_row(rows, "start")
        checkpoints, problems = read_checkpoints(self.folder, about.get("checkpoints"))
        curves = self._curves.thinned(limit)
        config = read_text(self.folder / CONFIG) or read_text(self.folder / DESCRIPTION)
        last_time = self._curves.last_time
        data = {
            "name": self.name,
            "folder": str(self.folder),
            "state": {"name": state.name, "why": state.why},
            "iter": max(self._curves.last_iter, _last_iteration(sessions)),
            "epoch": self._curves.last_epoch,
            "max_iters": about.get("max_iters"),
            "max_epochs": about.get("max_epochs"),
            "curves": curves,
            "rows": self._curves.rows,
            "last": {name: curve["y"][-1] for name, curve in curves.items() if curve["y"]},
            "best": _best(curves),
            "sessions": describe_sessions(sessions, last_time, state.name == "running"),
            "checkpoints": checkpoints,
            "mirror": read_object(self.folder / MIRROR),
            "pictures": pictures(find_pictures(self.folder)),
            "records": _records(self._curves.records.values()),
            "epoch_ends": sorted(self._curves.epoch_ends.items()),
            "costs": read_costs(self.folder / COSTS),
            "config": config,
            "settings": parse_settings(config),
            "warnings": [*problems, *_not_finite(curves), *self._warnings_of(sessions)],
            "warnings_left_out": self._warnings.left_out,
        }
        data["summary"] = summarize(data, about, _last_row(rows, "git"))
        return data

    def _warnings_of(self, sessions: list[Session]) -> list[Data]:
        """Return the warnings since the run began."""
        began = sessions[0].began if sessions else self._curves.first_time
        return self._warnings.since(began or 0.0)


def _short_names(readers: list[RunReader]) -> list[str]:
    """Return the names of the folders, with as many parents as make them unique."""
    paths = [reader.folder.resolve() for reader in readers]
    for length in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{path.name} ({number})" for number, path in enumerate(paths, 1)]  # one run twice


def _last_row(rows: list[Row], what: str) -> Row:
    for row in reversed(rows):
        if row["what"] == what:
            return row
    return {}


def _last_iteration(sessions: list[Session]) -> int:
    if not sessions:
        return 0
    return max(int(row.get("iter", 0)) for row in sessions[-1].rows)


def _stamp(path: Path) -> str:
    try:
        about = os.stat(path)
    except OSError:
        return "-"
    return f"{about.st_size}.{about.st_mtime_ns}"


def _differences(runs: list[Data]) -> list[Data]:
    """Return the settings that differ between runs; None if a run does not have a setting."""
    keys: dict[str, None] = {}
    for run in runs:
        keys.update(dict.fromkeys(run["settings"]))
    rows = []
    for key in keys:
        values = [run["settings"].get(key) for run in runs]
        if len(set(values)) > 1:
            rows.append({"key": key, "values": values})
    return rows


def _records(rows: Iterable[Row]) -> list[Data]:
    """Return recorded texts and histograms, the last one of each name."""
    kept = ("mode", "name", "iter", "step", "text", "counts", "edges")
    records = [{key: row[key] for key in kept if key in row} for row in rows]
    return sorted(records, key=lambda each: (each["mode"], each["name"]))


def _best(curves: Data) -> dict[str, Data]:
    """Return the best value of each validation metric whose direction its name implies."""
    best = {}
    for name, curve in curves.items():
        if not name.startswith("val/") or not curve["y"]:
            continue
        direction = infer_direction(name.removeprefix("val/"))
        if direction is None:
            continue
        value = min(curve["y"]) if direction == "less" else max(curve["y"])
        best[name] = {"value": value, "iter": curve["x"][curve["y"].index(value)]}
    return best


def _not_finite(curves: Data) -> list[Data]:
    """Return a warning for each curve with values that are not finite."""
    warnings = []
    for name, curve in curves.items():
        if "not_finite" in curve:
            count = curve["not_finite"]["count"]
            first = curve["not_finite"]["first"]
            text = f"{name} was not finite {count} times, first at iteration {first}"
            warnings.append({"time": None, "level": "warning", "text": text})
    return warnings
