"""Checkpoints of MMEngine and MMCV: read with an unpickler that admits known harmless classes and nothing else.

It is torch's own restricted unpickler (`weights_only=True`), which builds and calls only what it was told of. It is told of
stand-ins of ours, under the names that such files use: nothing of MMEngine is imported, and what comes out is plain data.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hookline.checkpoint import CheckpointError, load_checkpoint
from hookline.checkpoint.formats import deserialize

log = logging.getLogger(__name__)

STATISTICS = ("min", "max", "mean", "current")


def load(path: str | Path) -> dict[str, Any]:
    """A checkpoint of Hookline, MMEngine or MMCV as plain data, on the CPU; CheckpointError if it holds anything else.

    History buffers become `{"log_history": …, "count_history": …, "max_length": …}`, arrays tensors, and configs dicts.
    """
    try:
        return load_checkpoint(path)
    except CheckpointError as error:
        if "refused" not in str(error):
            raise
    with open(path, "rb") as file, torch.serialization.safe_globals(_admitted()):
        checkpoint = deserialize(file, str(path))
    log.info("%s: read with the restricted unpickler", path)
    return {key: as_plain(value) for key, value in checkpoint.items()}


class History:
    """Stands for MMEngine's HistoryBuffer."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def to_plain(self) -> dict[str, Any]:
        values, counts = (np.asarray(self.state.get(key, ())) for key in ("_log_history", "_count_history"))
        return {
            "log_history": torch.tensor(values.astype(np.float64)),
            "count_history": torch.tensor(counts.astype(np.int64)),
            "max_length": int(self.state.get("max_length", 1_000_000)),
        }


class _Statistic:
    """Stands for a method of HistoryBuffer, which such files refer to; there is nothing to call."""


def _attribute(owner: Any, name: str) -> Any:
    """Stands for `getattr`, by which such files refer to methods: of the history buffer, and of nothing else."""
    if owner is not History or name not in STATISTICS:
        raise ValueError(f"getattr({owner!r}, {name!r}) is refused")
    return _Statistic()


def _config(values: Any = (), *others: Any) -> dict[str, Any]:
    """Stands for ConfigDict and its like."""
    return dict(values)


def _path(*parts: str) -> str:
    """Stands for a path."""
    return "/".join(parts)


def _admitted() -> list[Any]:
    """What a file may name, each with what it gets instead."""
    table: dict[str, Callable[..., Any]] = {
        "mmengine.logging.history_buffer.HistoryBuffer": History,
        "hookline.compat.mmengine.logging.history_buffer.HistoryBuffer": History,
        "builtins.getattr": _attribute,
        "__builtin__.getattr": _attribute,
        "mmengine.config.config.ConfigDict": _config,
        "mmcv.utils.config.ConfigDict": _config,
        "addict.addict.Dict": _config,
        "pathlib.PosixPath": _path,
        "pathlib.PurePosixPath": _path,
        "numpy.ndarray": np.ndarray,
        "numpy.dtype": np.dtype,
    }
    arrays = np._core.multiarray if hasattr(np, "_core") else np.core.multiarray  # type: ignore[attr-defined]
    for home in ("numpy.core.multiarray", "numpy._core.multiarray"):
        table[f"{home}.scalar"] = arrays.scalar
        table[f"{home}._reconstruct"] = arrays._reconstruct
    kinds = [type(np.dtype(name)) for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")]
    named = [(target, name) for name, target in table.items()]
    return [*named, *((kind, f"{kind.__module__}.{kind.__qualname__}") for kind in kinds)]


def as_plain(value: Any) -> Any:
    """Data that a checkpoint of Hookline may hold; what has no plain form becomes None."""
    if isinstance(value, History):
        return value.to_plain()
    if isinstance(value, torch.Tensor) or type(value) in (type(None), bool, int, float, str, bytes):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy()) if value.dtype.kind in "biuf" else value.tolist()
    if isinstance(value, Counter):
        return value  # MultiStepLR keeps its milestones in one
    if isinstance(value, Mapping):
        return {key if type(key) in (str, int) else str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_plain(item) for item in value) if type(value) in (list, tuple) else [as_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_plain(item) for item in value), key=str)
    return None


__all__ = ["as_plain", "load"]
