"""The timeline of a run: rows that the run writes, and the state that follows from them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hookline.files import open_to_append, sync_file
from hookline.report.curves import parse_line
from hookline.report.environment import is_alive
from hookline.secrets import mask_text

SILENCE_S = 120.0  # after which a run on another host counts as killed
MAX_ERROR = 2000  # characters
FREQUENT = ("epoch", "validate", "save")  # kinds of which a page shows a selection
MAX_SHOWN = 300  # rows of each such kind
SHOWN_KEYS = (
    "what",
    "time",
    "iter",
    "epoch",
    "seconds",
    "reason",
    "error",
    "action",
    "from_iter",
    "resumed",
)

Row = dict[str, Any]


class Timeline:
    """A file of rows, one line each. Several threads may add rows."""

    def __init__(self, path: Path) -> None:
        self._file = open_to_append(path)
        self._lock = threading.Lock()

    def add(self, what: str, *, iter: int, epoch: int, **more: Any) -> None:
        """Append a row. After `close` this does nothing: a thread may finish late."""
        row = {"what": what, "time": round(time.time(), 3), "iter": iter, "epoch": epoch, **more}
        with self._lock:
            if not self._file.closed:
                self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
                self._file.flush()

    def sync(self) -> None:
        """Return when all rows are on the disk."""
        with self._lock:
            if not self._file.closed:
                sync_file(self._file)

    def close(self) -> None:
        self.sync()
        with self._lock:
            self._file.close()


class RunState(NamedTuple):
    """The state of a run (running, finished, stopped, failed, killed or unknown) and the reason."""

    name: str
    why: str


class Session(NamedTuple):
    """One process of a run: its rows, and the row of its end if it wrote one."""

    rows: list[Row]
    end: Row | None

    @property
    def began(self) -> float:
        return float(self.rows[0]["time"])

    def last_sign(self) -> float:
        """Return the time of the last row."""
        return max(float(row["time"]) for row in self.rows)


def read_timeline(path: Path) -> list[Row]:
    """Return the valid rows of a file, oldest first; none if there is no file."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return []
    rows = []
    for line in lines:
        row = parse_line(line)
        if row is None or type(row.get("time")) not in (int, float):
            continue
        if isinstance(row.get("what"), str):
            rows.append(row)
    return rows


def find_sessions(rows: list[Row]) -> list[Session]:
    """Return the processes of a run; each begins with a row `start`."""
    sessions: list[Session] = []
    for row in rows:
        if row["what"] == "start":
            sessions.append(Session([row], None))
        elif sessions:
            session = sessions[-1]
            session.rows.append(row)
            if row["what"] in ("stop", "fail"):
                sessions[-1] = session._replace(end=row)
    return sessions


def infer_state(
    sessions: list[Session], last_sign: float | None, clock: Callable[[], float] = time.time
) -> RunState:
    """Return the state of a run.

    Args:
        sessions: Its processes; the last one decides.
        last_sign: When its log was last written.
        clock: Returns the current time.
    """
    if not sessions:
        return RunState("unknown", "the run has no timeline")
    last = sessions[-1]
    if last.end is not None and last.end["what"] == "fail":
        return RunState("failed", str(last.end.get("error", "")))
    if last.end is not None:
        name = "finished" if last.end.get("finished") else "stopped"
        return RunState(name, str(last.end.get("reason", "")))
    alive = is_alive(last.rows[0])
    if alive is None:
        alive = clock() - max(last.last_sign(), last_sign or 0.0) < SILENCE_S
    if alive:
        return RunState("running", "")
    return RunState("killed", "the process was killed, or the machine went down")


def describe_sessions(
    sessions: list[Session], last_sign: float | None, running: bool
) -> list[dict[str, Any]]:
    """Return the processes of a run for a page: times, the kind of end, and events.

    Args:
        sessions: The processes.
        last_sign: When the log of the run was last written.
        running: Whether the last process is running.
    """
    described = []
    for session in sessions:
        is_last = session is sessions[-1]
        ended, how = _describe_end(session, last_sign if is_last else None, running and is_last)
        events = [_shown_part(row) for row in _select(session.rows)]
        if how == "killed":
            last = session.rows[-1]
            position = {"iter": last.get("iter", 0), "epoch": last.get("epoch", 0)}
            events.append({"what": "killed", "time": ended, **position})
        described.append({"began": session.began, "ended": ended, "how": how, "events": events})
    return described


def describe_error(error: BaseException) -> str:
    """Return an error with its notes, without secrets, and not too long for a row."""
    notes = [str(note) for note in getattr(error, "__notes__", [])]
    return mask_text("\n".join([f"{type(error).__name__}: {error}", *notes]))[:MAX_ERROR]


def _describe_end(session: Session, last_sign: float | None, running: bool) -> tuple[float, str]:
    """Return the time and the kind of the end of a process."""
    if session.end is not None:
        return float(session.end["time"]), session.end["what"]
    ended = max(session.last_sign(), last_sign or 0.0)
    return ended, "running" if running else "killed"


def _shown_part(row: Row) -> Row:
    return {key: row[key] for key in SHOWN_KEYS if key in row}


def _select(rows: list[Row]) -> list[Row]:
    """Return all rare rows, and at most `MAX_SHOWN` of each frequent kind, evenly spread."""
    counts = Counter(row["what"] for row in rows)
    seen: Counter[str] = Counter()
    selected = []
    for row in rows:
        what = row["what"]
        stride = -(-counts[what] // MAX_SHOWN) if what in FREQUENT else 1
        if what != "git" and seen[what] % stride == 0:
            selected.append(row)
        seen[what] += 1
    return selected
