"""The curves of a run, read back from its log."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hookline.errors import HooklineError
from hookline.events.writer import tag

Curve = list[tuple[int, float]]
NOT_SCALARS = ("mode", "iter", "epoch", "wall_time", "step")


def read_curves(run: str | Path) -> dict[str, Curve]:
    """The scalars of a work directory (or of its `log.jsonl`) by `train/loss`, `val/accuracy`, …: iterations and values."""
    path = Path(run)
    path = path / "log.jsonl" if path.is_dir() else path
    if not path.is_file():
        raise HooklineError(f"{run}: there is no log.jsonl; give a work directory of a run, or the file itself")
    curves: dict[str, Curve] = {}
    for row in _rows(path):
        for name, value in row.items():
            number = _number(value)
            if name not in NOT_SCALARS and number is not None:
                curves.setdefault(tag(str(row["mode"]), name), []).append((int(row["iter"]), number))
    return curves


def matching(metric: str, names: Iterable[str]) -> list[str]:
    """The curves that a metric's name means: `loss` is that of training and that of validation, `val_loss` the latter."""

    wanted = {metric, *(f"{mode}/{metric}" for mode in ("train", "val", "test"))}
    wanted |= {f"{mode}/{metric.removeprefix(f'{mode}_')}" for mode in ("train", "val", "test") if metric.startswith(f"{mode}_")}
    return [name for name in names if name in wanted]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # torn by a crash
        if isinstance(row, dict) and isinstance(row.get("iter"), int) and row.get("mode") in ("train", "val", "test"):
            yield row


def _number(value: Any) -> float | None:
    """A finite number; in a curve there is no place for others."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None
