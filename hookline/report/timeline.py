"""What happened to a run: small rows that it writes while it goes, and what they mean afterwards."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from hookline.report.curves import parse
from hookline.report.environment import is_alive
from hookline.secrets import mask_text

SILENCE = 120.0  # seconds without a sign of life after which a run on another machine counts as gone
LONGEST = 2000  # characters of an error
FREQUENT = ("epoch", "validate", "save")  # of which a page shows a selection
MOST_SHOWN = 300  # of each of these
DESCRIBED = ("what", "time", "iter", "epoch", "seconds", "reason", "error", "action", "from_iter", "resumed")

Row = dict[str, Any]


class Timeline:
    """Appends rows to a file, line by whole line."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        torn = _is_torn(path)
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        if torn:  # a killed run's last line, which the next one must not be glued to
            self._file.write("\n")

    def add(self, what: str, *, iter: int, epoch: int, **more: Any) -> None:
        row = {"what": what, "time": round(time.time(), 3), "iter": iter, "epoch": epoch, **more}
        with self._lock:
            if not self._file.closed:  # a probe may come to its end when the run is over
                self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()


class State(NamedTuple):
    """How a run stands: running, finished, stopped, failed, killed or unknown, and why."""

    name: str
    why: str


class Session(NamedTuple):
    """One process of a run: its rows, and what ended it."""

    rows: list[Row]
    ended: Row | None

    @property
    def began(self) -> float:
        return float(self.rows[0]["time"])

    def last_sign(self) -> float:
        return max(float(row["time"]) for row in self.rows)


def read_timeline(path: Path) -> list[Row]:
    """The rows of a file that make sense, oldest first; none if there is no file."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    rows = [row for line in lines if (row := parse(line)) is not None]
    return [row for row in rows if isinstance(row.get("what"), str) and type(row.get("time")) in (int, float)]


def sessions(rows: list[Row]) -> list[Session]:
    """The processes of a run; each begins with a row `start`."""
    parts: list[list[Row]] = []
    for row in rows:
        if row["what"] == "start":
            parts.append([row])
        elif parts:
            parts[-1].append(row)
    return [Session(part, next((row for row in reversed(part) if row["what"] in ("stop", "fail")), None)) for part in parts]


def state_of(parts: list[Session], last_sign: float | None) -> State:
    """How a run stands, judged by its last process."""
    if not parts:
        return State("unknown", "it has left no timeline")
    last = parts[-1]
    if last.ended is not None and last.ended["what"] == "fail":
        return State("failed", str(last.ended.get("error", "")))
    if last.ended is not None:
        reason = str(last.ended.get("reason", ""))
        return State("finished" if reason.startswith("reached max_") else "stopped", reason)
    alive = is_alive(last.rows[0])
    if alive is None:
        alive = time.time() - max(last.last_sign(), last_sign or 0.0) < SILENCE
    return State("running", "") if alive else State("killed", "the process ended without a word (killed, or the machine went down)")


def shown(parts: list[Session], last_sign: float | None, running: bool) -> list[dict[str, Any]]:
    """The processes of a run for a page: when, why it ended, and its events, of frequent ones a selection."""
    result = []
    for index, part in enumerate(parts):
        end = part.ended["time"] if part.ended else max(part.last_sign(), (last_sign or 0.0) if index == len(parts) - 1 else 0.0)
        how = part.ended["what"] if part.ended else "running" if running and index == len(parts) - 1 else "killed"
        events = [{key: row[key] for key in DESCRIBED if key in row} for row in _selection(part.rows)]
        if how == "killed":
            events.append({"what": "killed", "time": end, "iter": part.rows[-1].get("iter", 0), "epoch": part.rows[-1].get("epoch", 0)})
        result.append({"began": part.began, "ended": end, "how": how, "events": events})
    return result


def one_line(error: BaseException) -> str:
    """An error as a row can hold it, without secrets."""
    notes = [str(note) for note in getattr(error, "__notes__", [])]
    return mask_text("\n".join([f"{type(error).__name__}: {error}", *notes]))[:LONGEST]


def _is_torn(path: Path) -> bool:
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() != b"\n"


def _selection(rows: list[Row]) -> list[Row]:
    kept: set[int] = set()
    for what in {row["what"] for row in rows} - {"git"}:
        places = [index for index, row in enumerate(rows) if row["what"] == what]
        step = -(-len(places) // MOST_SHOWN) if what in FREQUENT else 1
        kept.update(places[::step])
    return [row for index, row in enumerate(rows) if index in kept]
