"""The writer for DVCLive: plain files in a folder, and a DVC experiment in a repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.outbox import Record, Row
from hookline.events.portable import portable
from hookline.events.rows import RowFile
from hookline.events.writer import WRITERS, TrackerWriter, require
from hookline.files import replace_file

ITERATIONS = ".iterations.jsonl"  # the iteration in which each row of the tables was recorded


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
        self._tables = Path(self._live.plots_dir, "metrics")
        Path(dir).mkdir(parents=True, exist_ok=True)
        self._iterations = RowFile(Path(dir, ITERATIONS))
        if not resume:
            self._iterations.replace([])

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        self._iteration = iter
        super().write_scalars(mode, scalars, iter=iter, epoch=epoch)

    def write_row(self, row: Row) -> None:
        self._iteration = row.iter
        super().write_row(row)

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        self._live.step = step
        named = {_path(name): value for name, value in scalars.items()}
        offsets = {name: _size(self._tables / f"{name}.tsv") for name in named}
        self._iterations.append({"iter": self._iteration, "offsets": offsets})
        for name, value in named.items():
            self._live.log_metric(name, value)
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
        """Drop the points that were recorded after an iteration, whatever their steps."""
        known: dict[tuple[str, int], int] = {}
        for row in self._iterations.rows():
            for name, offset in row["offsets"].items():
                known[name, offset] = row["iter"]
        kept: list[dict[str, Any]] = []
        for path in sorted(self._tables.rglob("*.tsv")):
            name = path.relative_to(self._tables).with_suffix("").as_posix()
            kept += _cut_table(path, name, known, iteration)
        self._iterations.replace(kept)

    def sync(self) -> None:
        self._iterations.sync()

    def close(self) -> None:
        self._iterations.close()
        self._live.end()


def _cut_table(
    path: Path, name: str, known: Mapping[tuple[str, int], int], iteration: int
) -> list[dict[str, Any]]:
    """Drop the later rows of a table; return the iterations and offsets of the others.

    Args:
        path: The table.
        name: Its name.
        known: The iterations of rows by table and offset; other rows have that of their step.
        iteration: The iteration to cut after.
    """
    header, *rows = path.read_bytes().splitlines(keepends=True) or [b""]
    columns = header.decode().split("\t")
    step_column = columns.index("step") if "step" in columns else 0
    kept = header
    entries: list[dict[str, Any]] = []
    offset = 0  # The first row is written together with the header.
    for row in rows:
        recorded_in = known.get((name, offset), _step(row.decode(), step_column))
        offset = (offset or len(header)) + len(row)
        if recorded_in <= iteration and row.endswith(b"\n"):
            entries.append({"iter": recorded_in, "offsets": {name: len(kept) if entries else 0}})
            kept += row
    if not entries:
        path.unlink()
    elif len(entries) < len(rows):
        replace_file(path, kept)
    return entries


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


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


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
