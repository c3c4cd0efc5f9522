"""The runs below a folder, read repeatedly."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hookline.report.collect import PresentPictures, RunReader, is_run, page_data
from hookline.report.last_rows import last_report
from hookline.report.names import LOG, TIMELINE
from hookline.report.pictures import Picture, find_pictures
from hookline.report.timeline import RunState, find_sessions, infer_state, read_timeline

MAX_DEPTH = 3  # folders below the given one
MAX_POINTS = 20_000  # of all curves of a run
MAX_RUNS = 500
MAX_SHOWN = 12  # runs on one page

Row = dict[str, Any]


class RunList:
    """All runs below a folder, by their relative path.

    A name from a request is only looked up here; it is never used as a path.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._readers: dict[str, RunReader] = {}
        self._rows: dict[str, Row] = {}
        self._lock = threading.Lock()  # the server has several threads; readers have positions

    def runs(self) -> list[Row]:
        """Return a row for each run: running ones first, then the newest first."""
        with self._lock:
            self._update_readers()
            rows = [self._row(name, reader) for name, reader in self._readers.items()]
        return sorted(rows, key=lambda row: (row["state"] != "running", -row["changed"]))

    def data(self, names: list[str], pictures: Callable[[str], PresentPictures]) -> Row:
        """Return the data of a page with these runs.

        Args:
            names: The runs; unknown names are ignored.
            pictures: Returns for a run the function that presents its pictures.
        """
        with self._lock:
            known = [name for name in dict.fromkeys(names) if name in self._readers]
            runs = []
            for name in known[:MAX_SHOWN]:
                runs.append(self._readers[name].read(pictures(name), MAX_POINTS))
            return page_data(runs)

    def folder_of(self, name: str) -> Path | None:
        """Return the folder of a run; None if the name is unknown."""
        with self._lock:
            reader = self._readers.get(name)
        return None if reader is None else reader.folder

    def picture(self, name: str, series: str, step: int) -> Picture | None:
        """Return a picture of a run; None if it does not exist."""
        folder = self.folder_of(name)
        if folder is None:
            return None
        for picture in find_pictures(folder).get(series, []):
            if picture.step == step:
                return picture
        return None

    def state(self, name: str) -> RunState:
        """Return the state of a run."""
        folder = self.folder_of(name)
        return RunState("unknown", "") if folder is None else _read_state(folder)

    def _row(self, name: str, reader: RunReader) -> Row:
        """Return the row of a run, from the cache if the run has ended and nothing is new."""
        row = self._rows.get(name)
        if row is None or row["state"] == "running" or row["version"] != _version(reader, row):
            row = _make_row(name, reader)
            self._rows[name] = row
        return row

    def _update_readers(self) -> None:
        found = dict(_find_runs(self.folder))
        self._readers = {name: each for name, each in self._readers.items() if name in found}
        for name, folder in found.items():
            if name not in self._readers:
                reader = RunReader(folder)
                reader.name = self.folder.resolve().name if name == "." else name
                self._readers[name] = reader


def _find_runs(root: Path) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for where, folders, _ in os.walk(root):
        path = Path(where)
        depth = len(path.relative_to(root).parts)
        if is_run(path):
            found.append((path.relative_to(root).as_posix(), path))
            folders.clear()
        elif depth >= MAX_DEPTH:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(found) >= MAX_RUNS:
            break
    return found


def _read_state(folder: Path) -> RunState:
    sessions = find_sessions(read_timeline(folder / TIMELINE))
    try:
        last_sign = (folder / LOG).stat().st_mtime
    except OSError:
        last_sign = None
    return infer_state(sessions, last_sign)


def _make_row(name: str, reader: RunReader) -> Row:
    last = last_report(reader.folder)
    state = _read_state(reader.folder).name
    parts = [last.position, last.results]
    if state == "running":
        parts.append(last.time_left)
    row = {
        "id": name,
        "name": reader.name,
        "state": state,
        "text": ", ".join(part for part in parts if part),
        "changed": last.time,
    }
    row["version"] = _version(reader, row)
    return row


def _version(reader: RunReader, row: Row) -> str:
    return f"{reader.version()}|{row['state']}"
