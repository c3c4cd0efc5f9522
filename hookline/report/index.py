"""An index of a long log: its thinned curves and warnings, so that a page need not read it all.

The file is a line of JSON, followed by the tables of the curves. It has the position in the logs
that it covers, and the bytes before that position. An index that does not fit its logs is ignored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hookline.errors import HooklineError
from hookline.files import open_to_read, replace_file
from hookline.report.bounded import COUNT, HIGH, LOW, MAX_PIECES, BoundedCurve
from hookline.report.curves import CurveReader
from hookline.report.warnings import WarningReader

VERSION = 1
MIN_BYTES = 4_000_000  # A log shorter than this is read in no time.
MAX_BYTES = 200_000_000
STEP_BYTES = 5 * 8  # of one row of each table
VALUE_BYTES = 3 * 8


def save_index(path: Path, curves: CurveReader, warnings: WarningReader) -> None:
    """Write the index, if the logs have grown so much that this is worth it."""
    if curves.unindexed_bytes() + warnings.unindexed_bytes() < MIN_BYTES:
        return
    about = {"version": VERSION, "curves": curves.about(), "warnings": warnings.about()}
    tables = []
    for curve in curves.curves.values():
        tables += [curve.steps.tobytes(), curve.values.tobytes()]
    header = json.dumps(about, ensure_ascii=True).encode()
    replace_file(path, b"\n".join([header, b"".join(tables)]))
    curves.mark_indexed()
    warnings.mark_indexed()


def load_index(path: Path, curves: CurveReader, warnings: WarningReader) -> None:
    """Continue two readers where the index ends, if there is one that fits their files."""
    try:
        with open_to_read(path) as file:
            header, _, tables = file.read(MAX_BYTES).partition(b"\n")
        about = json.loads(header)
        if about["version"] != VERSION:
            return
        curves.restore(about["curves"], _read_curves(about["curves"], tables))
        warnings.restore(about["warnings"])
    except (OSError, HooklineError, ValueError, LookupError, TypeError, RecursionError):
        return  # There is no index, or it is damaged: the logs are read from their beginning.


def _read_curves(about: dict[str, Any], tables: bytes) -> dict[str, BoundedCurve]:
    curves = {}
    position = 0
    for name, facts in about["curves"].items():
        pieces = facts["pieces"]
        if type(pieces) is not int or not 0 <= pieces <= MAX_PIECES:
            raise ValueError("too many pieces")
        curve = BoundedCurve()
        curve.not_finite = int(facts["not_finite"])
        curve.first_not_finite = int(facts["first_not_finite"])
        curve.length = int(facts["length"])
        curve.ends = [(int(x), float(y)) for x, y in facts["ends"]]
        middle = position + pieces * STEP_BYTES
        end = middle + pieces * VALUE_BYTES
        curve.steps = np.frombuffer(tables[position:middle], "<i8").reshape(pieces, 5)
        curve.values = np.frombuffer(tables[middle:end], "<f8").reshape(pieces, 3)
        if not _is_valid(curve):
            raise ValueError("not a curve")
        curves[name] = curve
        position = end
    return curves


def _is_valid(curve: BoundedCurve) -> bool:
    if len(curve.ends) != (2 if len(curve.steps) else 0) or curve.length < 1:
        return False
    if not np.isfinite([y for _, y in curve.ends]).all():
        return False
    counts = curve.steps[:, COUNT]
    is_counted = ((counts >= 1) & (counts <= curve.length)).all()
    return bool(is_counted and np.isfinite(curve.values[:, LOW : HIGH + 1]).all())
