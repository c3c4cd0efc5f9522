"""The curves of a run, from a log that may still grow."""

from __future__ import annotations

import itertools
import json
import math
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from hookline.events.read import NOT_SCALARS
from hookline.events.writer import tag
from hookline.report.downsample import thin
from hookline.report.tail import Tail

MODES = ("train", "val", "test")
MOST_POINTS = 60_000  # of all curves of a run together
MOST_OF_ONE, FEWEST_OF_ONE = 4000, 200
DIGITS = 6
LARGEST_STEP = 2**62


class Curve:
    """Iterations and values, in few bytes each."""

    def __init__(self) -> None:
        self.x, self.y = array("q"), array("d")
        self.not_finite, self.first_not_finite = 0, 0  # how often it was no finite number, and the first such iteration


class CurveReader:
    """All scalars of a `log.jsonl` by `train/loss`, `val/accuracy`, …; `update` reads what has been added."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._forget()

    def _forget(self) -> None:
        self.curves: dict[str, Curve] = {}
        self._by_name: dict[tuple[str, str], Curve] = {}
        self.rows = 0
        self.first_time: float | None = None
        self.last_time: float | None = None
        self.last_iter = 0
        self.last_epoch = 0

    def update(self) -> None:
        for lines in self._tail.pieces():
            if self._tail.restarted:
                self._tail.restarted = False
                self._forget()
            for _, alike in itertools.groupby(_rows(lines), key=lambda row: (row.get("mode"), *row)):
                self._add_alike(list(alike))
        if self._tail.restarted:  # it has become empty
            self._forget()

    def thinned(self, most: int = MOST_POINTS) -> dict[str, dict[str, Any]]:
        """Curves with few enough points for a page to stay quick, as plain values."""
        each = max(FEWEST_OF_ONE, min(MOST_OF_ONE, most // max(len(self.curves), 1)))
        return {name: _plain(curve, each) for name, curve in sorted(self.curves.items())}

    def _add_alike(self, rows: list[dict[str, Any]]) -> None:
        """Rows with the same names, column by column, which is several times as fast as row by row."""
        first, mode = rows[0], str(rows[0].get("mode"))
        columns = {name: [row[name] for row in rows] for name in first if name not in NOT_SCALARS or name == "iter"}
        steps = columns.pop("iter", [])
        plain = mode in MODES and set(map(type, steps)) == {int} and all(set(map(type, column)) == {float} for column in columns.values())
        if not plain or max(map(abs, steps)) > LARGEST_STEP or not all(np.isfinite(column).all() for column in columns.values()):
            for row in rows:
                self._add(row)
            return
        for name, column in columns.items():
            curve = self._by_name.get((mode, name)) or self._new(mode, name)
            curve.x.extend(steps)
            curve.y.extend(column)
        self.rows += len(rows)
        self._stand(first)
        self._stand(rows[-1])

    def _add(self, row: dict[str, Any]) -> None:
        mode, step = row.get("mode"), row.get("iter")
        if type(step) is not int or abs(step) > LARGEST_STEP or mode not in MODES:
            return
        self.rows += 1
        for name, value in row.items():
            if name in NOT_SCALARS:
                continue
            if type(value) is float or (type(value) is int and abs(value) < LARGEST_STEP):
                curve = self._by_name.get((mode, name)) or self._new(mode, name)
                if math.isfinite(value):
                    curve.x.append(step)
                    curve.y.append(value)
                else:
                    _note(curve, step)
            elif value in ("nan", "inf", "-inf"):
                _note(self._by_name.get((mode, name)) or self._new(mode, name), step)
        self._stand(row)

    def _stand(self, row: dict[str, Any]) -> None:
        self.last_iter, epoch, moment = row["iter"], row.get("epoch"), row.get("wall_time")
        if type(epoch) is int:
            self.last_epoch = epoch
        if type(moment) in (int, float):
            self.last_time = moment
            if self.first_time is None:
                self.first_time = moment

    def _new(self, mode: str, name: str) -> Curve:
        curve = self.curves.setdefault(tag(mode, name), Curve())
        self._by_name[mode, name] = curve
        return curve


def _note(curve: Curve, step: int) -> None:
    if not curve.not_finite:
        curve.first_not_finite = step
    curve.not_finite += 1


def _rows(lines: list[bytes]) -> list[dict[str, Any]]:
    """The objects of whole lines: in one go, which is twice as fast, or one by one if a line among them is torn."""
    try:
        rows = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
        if len(rows) == len(lines):
            return [row for row in rows if isinstance(row, dict)]
    except (ValueError, RecursionError):
        pass
    return [row for line in lines if (row := parse(line)) is not None]


def parse(line: bytes) -> dict[str, Any] | None:
    """The object in a line; None for one that a crash has torn."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _plain(curve: Curve, limit: int) -> dict[str, Any]:
    x, y = np.array(curve.x, dtype=np.int64), np.array(curve.y, dtype=np.float64)
    if len(x) > 1 and (np.diff(x) < 0).any():  # the chart needs them in order, whatever happened to the file
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    kept = thin(x, y, limit)
    values: dict[str, Any] = {"count": len(x), "x": kept.x.tolist(), "y": _rounded(kept.y)}
    if kept.x is not kept.mean_x:
        values |= {"mean_x": kept.mean_x.tolist(), "mean_y": _rounded(kept.mean_y)}
    if curve.not_finite:
        values["not_finite"] = {"count": curve.not_finite, "first": curve.first_not_finite}
    return values


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
