"""The base class of writers, and their registry."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hookline.errors import HooklineError, Suggestion
from hookline.events.outbox import Record, Row
from hookline.registry import Registry
from hookline.signature import parameters


class Writer:
    """A receiver of means at each logging interval, and of all other records at their steps."""

    slow: ClassVar[bool] = False  # whether its calls wait for a network and need a thread
    failed = False  # set before `close` if the run ended with an error

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        """Write scalars of train, val or test; `iter` and `epoch` count finished ones."""

    def write_row(self, row: Row) -> None:
        """Write recorded scalars, or results of an evaluation, at their own step."""
        iteration = row.step if row.mode == "train" else row.iter
        self.write_scalars(row.mode, row.values, iter=iteration, epoch=row.epoch)

    def write(self, record: Record) -> None:
        """Write an image, histogram, figure, text or file."""

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the config of the run, with secrets masked."""

    def cut_after(self, iteration: int) -> None:
        """Drop the records after the iteration that a run continues from, if possible."""

    def holds(self, mode: str, name: str, step: int, value: float | None = None) -> bool:
        """Return whether the tracker has a scalar; None stands for any value.

        A tracker that can be asked gets a row once if the process is killed during its delivery.
        """
        return False

    def set_aside(self) -> None:
        """Move the records of an earlier run aside, because a new run begins."""

    def sync(self) -> None:
        """Wait until everything written is on the disk; called before a checkpoint is saved."""

    def missing(self) -> str:
        """Return a note about records that were not uploaded, with advice; "" if all were."""
        return ""

    def close(self) -> None:
        """Write buffered records and release all resources."""


class TrackerWriter(Writer):
    """A writer for a tracker, where a scalar has a tag such as `train/loss` and a step."""

    def log_scalars(self, scalars: Mapping[str, float], step: int) -> None:
        """Write scalars by their tags."""
        raise NotImplementedError

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        tagged = {tag(mode, name): float(value) for name, value in scalars.items()}
        self.log_scalars({**tagged, f"{mode}/epoch": epoch}, iter)

    def write_row(self, row: Row) -> None:
        tagged = {tag(row.mode, name): float(value) for name, value in row.values.items()}
        self.log_scalars(tagged, row.step)


class RegistryOfWriters(Registry[Writer]):
    """The registry of writers; it fills in paths and progress from the run."""

    def build_for(
        self, config: Mapping[str, Any] | Writer | str, progress: Any, work_dir: Path
    ) -> Writer:
        """Build a writer from `csv` or `{type: csv, path: …}`, relative to the work directory."""
        if isinstance(config, Writer):
            return config
        config = {"type": config} if isinstance(config, str) else dict(config)
        known = parameters(self.get(config.get("type", ""))).known
        for key in ("path", "log_dir", "dir"):
            if key in known and (key in config or known[key].default is not None):
                given = config.get(key, known[key].default)
                config[key] = str(work_dir / given) if isinstance(given, (str, Path)) else given
        return self.build(config, **({"progress": progress} if "progress" in known else {}))


WRITERS = RegistryOfWriters("writer", Writer, home="hookline.events.builtin")


def require(module: str, extra: str) -> Any:
    """Import a module of an optional package; raise HooklineError if it is not installed."""
    check_installed(module, extra)
    return importlib.import_module(module)


def check_installed(module: str, extra: str) -> None:
    """Raise HooklineError if a package is not installed, without importing it."""
    if importlib.util.find_spec(module) is None:
        advice = Suggestion(advice=f"pip install 'hookline[{extra}]'")
        raise HooklineError(f"the package {module!r} is not installed", suggestion=advice)


def tag(mode: str, name: str) -> str:
    """Return the name of a scalar in trackers: `train/loss`, `val/accuracy`, `system/cpu`."""
    if mode == "train" and "/" in name:
        return name
    return f"{mode}/{name.removeprefix(f'{mode}_')}"
