"""Read the curves of a run from its log."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hookline.errors import HooklineError, Suggestion
from hookline.events.rows import RESERVED
from hookline.events.writer import tag

Curve = list[tuple[float, float]]


class RunLog:
    """The rows of a run's log, and its curves by names such as `train/loss`.

    Args:
        run: A work directory, or a `log.jsonl`.

    Attributes:
        rows: The rows in the order in which they were written: `mode`, `iter`, `epoch` and scalars.
        by_epoch: Whether all metrics were measured at the ends of epochs.
    """

    def __init__(self, run: str | Path) -> None:
        self._run = run
        path = Path(run)
        path = path / "log.jsonl" if path.is_dir() else path
        if not path.is_file():
            advice = Suggestion(advice="pass the work directory of a run, or the file itself")
            raise HooklineError("there is no log.jsonl", file=str(run), suggestion=advice)
        self.rows = list(_rows(path))
        evaluations = [row for row in self.rows if row["mode"] != "train" and "step" in row]
        self._epoch_ends = [
            (row["iter"], row["epoch"]) for row in evaluations if row["step"] == row["epoch"]
        ]
        self.by_epoch = bool(evaluations) and len(self._epoch_ends) == len(evaluations)

    def __repr__(self) -> str:
        return f"RunLog({str(self._run)!r}, curves={list(self.curves())})"

    def axis(self, curve: str) -> str:
        """Return the x axis of a curve: `epoch` or `iteration`."""
        is_metric = curve.startswith(("val/", "test/"))
        return "epoch" if is_metric and self.by_epoch else "iteration"

    def to_pandas(self) -> Any:
        """Return all rows as a pandas DataFrame, with one column for each scalar."""
        try:
            import pandas
        except ImportError as error:
            raise HooklineError("to_pandas needs pandas: pip install pandas") from error
        return pandas.DataFrame.from_records(self.rows)

    def curves(self) -> dict[str, Curve]:
        """Return all curves over their own steps."""
        return self._collect(lambda row: row.get("step", row["iter"]))

    def curves_over_epochs(self) -> dict[str, Curve]:
        """Return all curves over epochs, to draw those of training and of metrics together."""
        ends = [(0, 0), *self._epoch_ends]
        return self._collect(lambda row: _interpolate(row["iter"], ends))

    def _collect(self, position: Callable[[dict[str, Any]], float]) -> dict[str, Curve]:
        curves: dict[str, Curve] = {}
        for row in self.rows:
            x = position(row)
            for name, value in row.items():
                number = _number(value)
                if name not in RESERVED and number is not None:
                    curves.setdefault(tag(str(row["mode"]), name), []).append((x, number))
        return curves


def read_curves(run: str | Path) -> dict[str, Curve]:
    """Return the curves of a work directory, or of a `log.jsonl`, by names such as `train/loss`."""
    return RunLog(run).curves()


def _interpolate(iteration: int, ends: Sequence[tuple[int, int]]) -> float:
    """Return the position of an iteration in epochs, given the ends of some epochs."""
    before, after = ends[0], ends[0]
    for end in ends:
        if end[0] > after[0]:
            before, after = after, end
        if after[0] >= iteration:
            break
    if after[0] == before[0]:
        return float(after[1])
    per_iteration = (after[1] - before[1]) / (after[0] - before[0])
    return after[1] + (iteration - after[0]) * per_iteration


def matching(metric: str, names: Iterable[str]) -> list[str]:
    """Return the names of a metric's curves: `loss` has all splits, `val_loss` only one."""
    wanted = {metric, *(f"{mode}/{metric}" for mode in ("train", "val", "test"))}
    wanted |= {
        f"{mode}/{metric.removeprefix(f'{mode}_')}"
        for mode in ("train", "val", "test")
        if metric.startswith(f"{mode}_")
    }
    return [name for name in names if name in wanted]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # A crash cut the line, or it is not ours.
        if (
            isinstance(row, dict)
            and isinstance(row.get("iter"), int)
            and row.get("mode") in ("train", "val", "test")
        ):
            yield row


def _number(value: Any) -> float | None:
    """Return a finite number, or None."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
