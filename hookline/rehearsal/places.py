"""Where a run will write: whether it can."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.errors import CheckpointError
from hookline.rehearsal.findings import Finding

PREFIX = ".hookline-rehearsal-"


def existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    path = Path(os.path.abspath(path))
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def check_folder(path: Path, where: str) -> list[Finding]:
    """Whether a folder can be made and written to, found by writing there."""
    parent = existing(path)
    advice = "choose another folder, or make this one writable"
    if not parent.is_dir():
        return [Finding("error", where, f"{path} cannot be made: {parent} is not a directory", advice)]
    try:
        with tempfile.TemporaryFile(dir=parent, prefix=PREFIX) as file:
            file.write(b"rehearsal")
            file.flush()
    except OSError as error:
        return [Finding("error", where, f"{path} cannot be written to: {error.strerror or error}", advice)]
    return []


def check_occupied(path: Path, resumes: bool) -> list[Finding]:
    """Whether another run is at work in a folder, or has left its checkpoints there."""
    if not path.is_dir():
        return []
    store = CheckpointStore(path)
    try:
        if (path / ".hookline.lock").exists():
            store.lock()
        entries = store.entries()
    except CheckpointError as error:
        return [Finding("error", "work_dir", str(error), "wait for it, or use another --work-dir")]
    finally:
        store.unlock()
    if entries and not resumes:
        text = f"{path} holds checkpoints of an earlier run, up to iteration {entries[-1].step}, which this one will overwrite"
        return [Finding("warning", "work_dir", text, "--resume continues it; another --work-dir keeps it")]
    return []
