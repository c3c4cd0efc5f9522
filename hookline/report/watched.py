"""The runs below a folder, read again and again."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from hookline.report.collect import RunReader, is_run, together
from hookline.report.curves import parse
from hookline.report.names import LOG, TIMELINE
from hookline.report.pictures import Picture, find_pictures
from hookline.report.timeline import State, read_timeline, sessions, state_of

DEEPEST = 3  # folders below the one given
LIVE_POINTS = 20_000  # of all curves of a run
MOST_RUNS = 500
MOST_SHOWN = 12  # runs on one page at a time


class Watched:
    """All runs of a folder, by their path in it; that path is only ever looked up, never opened as it was given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._readers: dict[str, RunReader] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()  # the server has several threads, and a reader remembers how far it is

    def runs(self) -> list[dict[str, Any]]:
        """What there is, those that run and then the newest first."""
        with self._lock:
            self._look()
            rows = [self._row(name, reader) for name, reader in self._readers.items()]
        return sorted(rows, key=lambda row: (row["state"] != "running", -row["changed"]))

    def data(self, names: list[str], pictures: Any) -> dict[str, Any]:
        """The data of a page with these runs; `pictures(name)` says how to show the pictures of one."""
        with self._lock:
            known = [name for name in dict.fromkeys(names) if name in self._readers][:MOST_SHOWN]
            return together([self._readers[name].read(pictures(name), LIVE_POINTS) for name in known])

    def folder_of(self, name: str) -> Path | None:
        with self._lock:
            reader = self._readers.get(name)
        return None if reader is None else reader.folder

    def picture(self, name: str, series: str, step: int) -> Picture | None:
        """One of the pictures that were found; None for anything else."""
        folder = self.folder_of(name)
        found = find_pictures(folder).get(series, []) if folder is not None else []
        return next((picture for picture in found if picture.step == step), None)

    def state(self, name: str) -> State:
        folder = self.folder_of(name)
        return State("unknown", "") if folder is None else _state(folder)

    def _row(self, name: str, reader: RunReader) -> dict[str, Any]:
        """What a list says of a run; of one that does not run and has nothing new it is known already."""
        version, known = reader.version(), self._rows.get(name)
        if known is None or known["version"] != f"{version}|{known['state']}" or known["state"] == "running":
            self._rows[name] = known = _brief(name, reader)
        return known

    def _look(self) -> None:
        found = dict(_find_runs(self.folder))
        for name in [name for name in self._readers if name not in found]:
            del self._readers[name]
        for name, folder in found.items():
            if name not in self._readers:
                reader = RunReader(folder)
                reader.name = self.folder.resolve().name if name == "." else name
                self._readers[name] = reader


def _find_runs(root: Path) -> list[tuple[str, Path]]:
    found = []
    for where, folders, _ in os.walk(root):
        path = Path(where)
        if is_run(path):
            found.append((path.relative_to(root).as_posix(), path))
            folders.clear()
        elif len(path.relative_to(root).parts) >= DEEPEST:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if len(found) >= MOST_RUNS:
            break
    return found


def _state(folder: Path) -> State:
    parts = sessions(read_timeline(folder / TIMELINE))
    try:
        sign = (folder / LOG).stat().st_mtime
    except OSError:
        sign = None
    return state_of(parts, sign)


def _brief(name: str, reader: RunReader) -> dict[str, Any]:
    state = _state(reader.folder)
    text, changed = brief_text(reader.folder)
    version = f"{reader.version()}|{state.name}"
    return {"id": name, "name": reader.name, "state": state.name, "text": text, "changed": changed, "version": version}


def brief_text(folder: Path) -> tuple[str, float]:
    """The last thing that a run reported, in a few words, and when."""
    try:
        with open(folder / LOG, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - 20_000))
            lines = file.read().splitlines()
    except OSError:
        return "", 0.0
    rows = [row for line in lines[-20:] if (row := parse(line)) is not None and "iter" in row]
    if not rows:
        return "", 0.0
    last = rows[-1]
    values = [f"{key} {last[key]:.4g}" for key in ("loss", "val_loss", "accuracy") if isinstance(last.get(key), float)]
    moment = last.get("wall_time")
    text = ", ".join([f"epoch {last.get('epoch', '?')}", f"iteration {last['iter']}", *values])
    return text, float(moment) if isinstance(moment, (int, float)) else 0.0
