"""The curves of a run, read from a log that may still grow."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from hookline.events.rows import RESERVED
from hookline.events.writer import tag
from hookline.report.bounded import BoundedCurve
from hookline.report.tail import Tail

# Numbers about a log.
FACTS = ("rows", "first_time", "last_time", "last_iter", "last_epoch")
MODES = ("train", "val", "test")
RECORDS = ("text", "histogram")
MAX_RECORDS = 200  # in a page
MAX_POINTS = 60_000  # of all curves of a run together
MAX_CURVE_POINTS = 4000
MIN_CURVE_POINTS = 200
DIGITS = 6
MAX_STEP = 2**62
NOT_FINITE = ("nan", "inf", "-inf")  # as the log writes them

Row = dict[str, Any]


class CurveReader:
    """A reader of all scalars of a `log.jsonl` by tag: `train/loss`, `val/accuracy`."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._forget()

    def _forget(self) -> None:
        self.curves: dict[str, BoundedCurve] = {}
        self._by_name: dict[tuple[str, str], BoundedCurve] = {}
        self.rows = 0
        self.first_time: float | None = None
        self.last_time: float | None = None
        self.last_iter = 0
        self.last_epoch = 0
        self.epoch_ends: dict[int, int] = {}  # iterations of validations that count by epoch
        self.records: dict[tuple[str, str], Row] = {}  # the last text or histogram of each name

    def about(self) -> dict[str, Any]:
        """Return the position of the reader and everything it knows but tables, for an index."""
        for curve in self.curves.values():
            curve.fold()
        facts = {name: getattr(self, name) for name in FACTS}
        curves = {name: curve.about() for name, curve in self.curves.items()}
        return {"tail": self._tail.about(), "facts": facts, "curves": curves}

    def restore(self, about: dict[str, Any], curves: dict[str, BoundedCurve]) -> None:
        """Continue where an index ends, if the log is the one that it was made of."""
        facts = about["facts"]
        if not all(type(facts[name]) in (int, float, type(None)) for name in FACTS):
            raise ValueError("not a number")
        if self._tail.restore(about["tail"]):
            self.curves = curves
            for name in FACTS:
                setattr(self, name, facts[name])

    def unindexed_bytes(self) -> int:
        return self._tail.unindexed_bytes()

    def mark_indexed(self) -> None:
        self._tail.mark_indexed()

    def update(self) -> None:
        """Read the new lines of the log."""
        for lines in self._tail.new_lines():
            if self._tail.restarted:
                self._tail.restarted = False
                self._forget()
            # Consecutive rows with the same names are added by column: several times as fast.
            for _, group in itertools.groupby(_parse_lines(lines), key=_names):
                self._add_rows(list(group))
        if self._tail.restarted:  # the file is empty now
            self._forget()

    def thinned(self, limit: int = MAX_POINTS) -> dict[str, dict[str, Any]]:
        """Return curves as plain values, with at most about `limit` points in total."""
        share = limit // max(len(self.curves), 1)
        each = max(MIN_CURVE_POINTS, min(MAX_CURVE_POINTS, share))
        return {name: _to_plain(curve, each) for name, curve in sorted(self.curves.items())}

    def _add_rows(self, rows: list[Row]) -> None:
        """Add rows that have the same names."""
        mode = str(rows[0].get("mode"))
        columns = {}
        for name in rows[0]:
            if name not in RESERVED:
                columns[name] = [row[name] for row in rows]
        steps: list[Any] = [_step(row) for row in rows]
        if mode not in MODES or not _are_steps(steps) or not _are_finite(columns):
            for row in rows:
                self._add_row(row)
            return
        for name, column in columns.items():
            curve = self._curve(mode, name)
            curve.extend(steps, column)
        self.rows += len(rows)
        for row in (rows[0], rows[-1]) if mode == "train" else rows:
            self._update_position(row)

    def _add_row(self, row: Row) -> None:
        """Add one row; ignore everything in it that is not a scalar of a run."""
        mode: Any = row.get("mode")
        step: Any = _step(row)
        if mode in RECORDS and isinstance(row.get("name"), str):
            self._add_record(row)
        if mode not in MODES or not _are_steps([step]):
            return
        self.rows += 1
        for name, value in row.items():
            if name in RESERVED:
                continue
            if type(value) is float or (type(value) is int and abs(value) < MAX_STEP):
                self._curve(mode, name).add(step, value)
            elif value in NOT_FINITE:
                self._curve(mode, name).add_not_finite(step)
        self._update_position(row)

    def _add_record(self, row: Row) -> None:
        key = (row["mode"], row["name"])
        if key in self.records or len(self.records) < MAX_RECORDS:
            self.records[key] = row

    def _update_position(self, row: Row) -> None:
        self.last_iter = row["iter"]
        epoch = row.get("epoch")
        if row["mode"] != "train" and type(epoch) is int and row.get("step") == epoch:
            self.epoch_ends[row["iter"]] = epoch
        if type(row.get("epoch")) is int:
            self.last_epoch = row["epoch"]
        if type(row.get("wall_time")) in (int, float):
            self.last_time = row["wall_time"]
            if self.first_time is None:
                self.first_time = row["wall_time"]

    def _curve(self, mode: str, name: str) -> BoundedCurve:
        curve = self._by_name.get((mode, name))
        if curve is None:
            curve = self.curves.setdefault(tag(mode, name), BoundedCurve())
            self._by_name[mode, name] = curve
        return curve


def _step(row: Row) -> Any:
    """Return the x of a row: a given step of a value in training, else the iteration."""
    if row.get("mode") == "train" and "step" in row:
        return row["step"]
    return row.get("iter")


def parse_line(line: bytes) -> Row | None:
    """Return the JSON object in a line; None if the line is torn or holds anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _parse_lines(lines: list[bytes]) -> list[Row]:
    """Return the JSON objects in lines."""
    try:  # All at once, which is twice as fast; possible if no line is torn.
        rows = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
        if len(rows) == len(lines):
            return [row for row in rows if isinstance(row, dict)]
    except (ValueError, RecursionError):
        pass
    parsed = [parse_line(line) for line in lines]
    return [row for row in parsed if row is not None]


def _names(row: Row) -> tuple[Any, ...]:
    return (row.get("mode"), *row)


def _are_steps(values: list[Any]) -> bool:
    return all(type(value) is int and abs(value) <= MAX_STEP for value in values)


def _are_finite(columns: dict[str, list[Any]]) -> bool:
    """Return whether all values are finite floats."""
    kinds = {type(value) for column in columns.values() for value in column}
    if kinds - {float}:
        return False
    return all(np.isfinite(column).all() for column in columns.values())


def _to_plain(curve: BoundedCurve, limit: int) -> dict[str, Any]:
    kept = curve.thinned(limit)
    count = curve.count()
    values: dict[str, Any] = {"count": count, "x": kept.x.tolist(), "y": _round(kept.y)}
    if kept.x is not kept.mean_x:
        values["mean_x"] = kept.mean_x.tolist()
        values["mean_y"] = _round(kept.mean_y)
    if curve.not_finite:
        values["not_finite"] = {"count": curve.not_finite, "first": curve.first_not_finite}
    return values


def _round(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
