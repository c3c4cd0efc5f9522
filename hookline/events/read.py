"""Read the curves of a run from its log."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hookline.errors import HooklineError, Suggestion
from hookline.events.writer import tag

Curve = list[tuple[int, float]]
NOT_SCALARS = ("mode", "iter", "epoch", "wall_time", "step")


def read_curves(run: str | Path) -> dict[str, Curve]:
    """Return the curves of a work directory, or of a `log.jsonl`, by names such as `train/loss`."""
    path = Path(run)
    path = path / "log.jsonl" if path.is_dir() else path
    if not path.is_file():
        advice = Suggestion(advice="pass the work directory of a run, or the file itself")
        raise HooklineError("there is no log.jsonl", file=str(run), suggestion=advice)
    curves: dict[str, Curve] = {}
    for row in _rows(path):
        for name, value in row.items():
            number = _number(value)
            if name not in NOT_SCALARS and number is not None:
                curves.setdefault(tag(str(row["mode"]), name), []).append(
                    (int(row["iter"]), number)
                )
    return curves


def matching(metric: str, names: Iterable[str]) -> list[str]:
    """Return the curves of a metric: `loss` is that of training and validation, `val_loss` one."""
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
