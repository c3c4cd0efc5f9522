"""Work directories of runs, made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROW = {"mode": "train", "iter": 1, "epoch": 1, "wall_time": 1.0, "loss": 1.0}


def make_run(
    folder: Path,
    config: str = "optimizer: {lr: 0.1}\n",
    rows: Sequence[dict[str, Any]] = (ROW,),
    timeline: Sequence[dict[str, Any]] = (),
) -> Path:
    """Make a work directory with a log, a config and, if there are rows for it, a timeline."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config)
    write_rows(folder / "log.jsonl", rows)
    if timeline:
        write_rows(folder / "timeline.jsonl", timeline)
    return folder


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
