"""Checks of the directories that a run writes to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.names import LOCK
from hookline.dry_run.findings import Finding

TEMPORARY_PREFIX = ".hookline-dry-run-"


def nearest_existing(path: Path) -> Path:
    """Return a path, or the nearest of its parents that exists."""
    path = Path(os.path.abspath(path))
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def check_writable(path: Path, where: str) -> list[Finding]:
    """Check that a directory can be created and written to, by writing a temporary file."""
    parent = nearest_existing(path)
    advice = "choose another directory, or make this one writable"
    if not parent.is_dir():
        text = f"cannot create {path}: {parent} is not a directory"
        return [Finding("error", where, text, advice)]
    try:
        with tempfile.TemporaryFile(dir=parent, prefix=TEMPORARY_PREFIX) as file:
            file.write(b"dry run")
            file.flush()
    except OSError as error:
        text = f"cannot write to {path}: {error.strerror or error}"
        return [Finding("error", where, text, advice)]
    return []


def check_unused(path: Path, resumes: bool) -> list[Finding]:
    """Check that no other run uses a work directory, or has left checkpoints in it.

    Args:
        path: The work directory.
        resumes: Whether the run will resume, so that checkpoints are expected.
    """
    if not path.is_dir():
        return []
    store = CheckpointStore(path)
    try:
        if (path / LOCK).exists():  # Locking creates the file, which a dry run must not.
            store.lock()
        entries = store.entries()
    except CheckpointError as error:
        advice = "wait until the other run ends, or use another --work-dir"
        return [Finding("error", "work_dir", str(error), advice)]
    finally:
        store.unlock()
    if not entries or resumes:
        return []
    last = entries[-1].step
    text = f"{path} has checkpoints of an earlier run, up to iteration {last}; they are overwritten"
    advice = "continue that run with --resume, or keep it with another --work-dir"
    return [Finding("warning", "work_dir", text, advice)]
