"""What a writer is, and the registry of writers."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hookline.errors import HooklineError
from hookline.events.storage import Record
from hookline.registry import Registry
from hookline.signature import parameters


class Writer:
    """Takes scalars at each logging interval and other records as they come; keeps nothing open after `close`."""

    slow: ClassVar[bool] = False  # whether its calls wait for a network, so that a thread of their own has to make them
    failed = False  # set before `close` where the run ended with an error

    def write_scalars(self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int) -> None:
        """`mode` is train, val or test; `iter` and `epoch` count what is finished."""

    def write(self, record: Record) -> None:
        """An image, histogram, figure, text or file."""

    def write_config(self, config: Mapping[str, Any]) -> None:
        """The configuration of the run, without secrets."""

    def cut_after(self, iteration: int) -> None:
        """The run goes on from this iteration: drop what was written of later ones, where that can be done."""

    def set_aside(self) -> None:
        """A new run begins: keep apart from it what an earlier one left in the same place."""

    def missing(self) -> str:
        """What is not where it should be although no call has failed, and what to do about it; "" if nothing is."""
        return ""

    def close(self) -> None:
        """Write out what is left and let go of everything."""


class RegistryOfWriters(Registry[Writer]):
    """The registry of writers: what a run knows and a config need not say is filled in."""

    def build_for(self, config: Mapping[str, Any] | Writer | str, progress: Any, work_dir: Path) -> Writer:
        """A writer from `csv` or `{type: csv, path: …}`; relative paths lie in the work directory."""
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
    """A module of an optional package; an error that says how to install it if it is not there."""
    check_installed(module, extra)
    return importlib.import_module(module)


def check_installed(module: str, extra: str) -> None:
    """The same error, without the time that an import takes."""
    if importlib.util.find_spec(module) is None:
        raise HooklineError(f"{module} is not installed: pip install 'hookline[{extra}]'")


def tag(mode: str, name: str) -> str:
    """`train/loss` and `val/accuracy`, under which trackers file `loss` and `accuracy`; `system/cpu` stays what it is."""
    if mode == "train" and "/" in name:
        return name
    return f"{mode}/{name.removeprefix(f'{mode}_')}"
