"""Files of recorded images and figures in the work directory, and their entries in the log."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from hookline.events.jsonl import JSONLinesWriter
from hookline.events.outbox import Record, Row
from hookline.events.portable import portable, range_beyond, to_png
from hookline.events.writer import Writer
from hookline.files import replace_file

FOLDER = "records"

log = logging.getLogger("hookline")


class RecordFiles(Writer):
    """A writer of recorded images to files, with entries for all records in the log.

    Records of hooks that write their own files are ignored.

    Args:
        work_dir: The work directory; images go to `records/<name>/step_<n>.png` in it.
        lines: The log of the run.
    """

    def __init__(self, work_dir: Path, lines: JSONLinesWriter) -> None:
        self._work_dir = work_dir
        self._lines = lines
        self._clipped: set[str] = set()  # names of images with numbers that were clipped

    def write_row(self, row: Row) -> None:
        """Do nothing: the log has its own rows."""

    def write(self, record: Record) -> None:
        if record.owner or record.kind == "text":  # The log writes texts itself.
            return
        if record.kind == "image":
            self._warn_if_clipped(record)
        try:
            record = portable(record)
        except ValueError as error:  # An invalid image must not end the run.
            log.warning("%s %r is not kept: %s", record.kind, record.name, error)
            return
        if record.kind == "image":
            path = Path(FOLDER, *_parts(record.name), f"step_{record.step:06d}.png")
            (self._work_dir / path).parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._work_dir / path, to_png(record.value))
            self._lines.write_entry(record, path=path.as_posix())
        elif record.kind == "histogram":
            counts, edges = (part.tolist() for part in record.value)
            self._lines.write_entry(record, counts=counts, edges=edges)
        else:
            self._lines.write_entry(record, path=str(record.value))

    def _warn_if_clipped(self, record: Record) -> None:
        beyond = None if record.name in self._clipped else range_beyond(record.value)
        if beyond is None:
            return
        self._clipped.add(record.name)
        low, high = beyond
        log.warning(
            "image %r has numbers from %.4g to %.4g, which are clipped: scale them to 0 to 1, or "
            "record whole numbers from 0 to 255",
            record.name, low, high,
        )  # fmt: skip


def _parts(name: str) -> list[str]:
    """Return the folders of a name; none of them leads out of the work directory."""
    parts = [re.sub(r"[^\w.\-]", "_", part).lstrip(".") for part in name.split("/")]
    return [part for part in parts if part] or ["_"]
