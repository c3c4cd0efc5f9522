"""The writer for DVCLive: plain files in a folder, and a DVC experiment in a repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.outbox import Record
from hookline.events.portable import portable
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.files import replace_file, replace_lines


@WRITERS.register("dvclive")
class DVCLiveWriter(TrackerWriter):
    """A writer of DVCLive files: metrics as tables, parameters as YAML, and images."""

    def __init__(
        self,
        dir: str | Path = "dvclive",
        resume: bool = False,
        save_dvc_exp: bool = False,
        report: str | None = None,
        dvcyaml: str | None = None,
    ) -> None:
        self._cache = save_dvc_exp  # DVC keeps files only within its repository.
        live = require("dvclive", "dvclive").Live
        self._live = (live if save_dvc_exp else _files_only(live))(
            str(dir), resume=resume, save_dvc_exp=save_dvc_exp, report=report, dvcyaml=dvcyaml
        )

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        self._live.step = step
        for name, value in scalars.items():
            self._live.log_metric(_path(name), value)
        self._live.sync()

    def write(self, record: Record) -> None:
        record = portable(record)
        self._live.step = record.step
        name, value = _path(record.name), record.value
        if record.kind == "image":
            self._live.log_image(f"{name}/{record.step}.png", value)
        elif record.kind == "histogram":
            edges = value.edges.tolist()
            points = [
                {"from": low, "count": int(count)}
                for low, count in zip(edges, value.counts, strict=False)
            ]
            self._live.log_plot(
                f"{name.replace('/', '_')}_{record.step}",
                points,
                x="from",
                y="count",
                template="bar_horizontal",
            )
        elif record.kind == "text":
            path = Path(self._live.dir) / "text" / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, value)
        else:
            self._live.log_artifact(
                value, type="model" if name.startswith("checkpoints/") else None, cache=self._cache
            )

    def write_config(self, config: Mapping[str, Any]) -> None:
        self._live.log_params(_without_none(config))

    def cut_after(self, iteration: int) -> None:
        """Drop the points after an iteration from the tables."""
        for path in sorted(Path(self._live.plots_dir, "metrics").rglob("*.tsv")):
            header, *rows = path.read_text(encoding="utf-8").splitlines() or [""]
            column = header.split("\t").index("step") if "step" in header.split("\t") else 0
            kept = [row for row in rows if _step(row, column) <= iteration]
            if len(kept) < len(rows):
                replace_lines(path, [header, *kept])

    def close(self) -> None:
        self._live.end()


def _files_only(live: Any) -> Any:
    """Return DVCLive without DVC, which would initialize the git repository and stage files."""

    class FilesOnly(live):  # type: ignore[misc]
        def _init_dvc(self) -> None:
            self._dvc_file = self._init_dvc_file()

    return FilesOnly


def _path(name: str) -> str:
    """Return a name that is a path below the folder."""
    parts = [re.sub(r"[^\w.\-]", "_", part) for part in name.split("/")]
    return "/".join(part for part in parts if part not in ("", ".", "..")) or "_"


def _step(row: str, column: int) -> float:
    try:
        return int(row.split("\t")[column])
    except (IndexError, ValueError):
        return float("inf")  # A crash cut the line.


def _without_none(value: Any) -> Any:
    """Return parameters without null, which DVCLive rejects."""
    if isinstance(value, Mapping):
        return {str(key): _without_none(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_none(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)
