"""Load checkpoints of MMEngine and MMCV with an unpickler that admits only known, harmless classes.

It is the restricted unpickler of torch (`weights_only=True`), which builds and calls nothing but
admitted classes. Here these are replacements under the names that such files use: nothing of
MMEngine is imported, and the result is plain data.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hookline.checkpoint import load_checkpoint
from hookline.checkpoint.errors import CheckpointError, UnsafeCheckpoint
from hookline.checkpoint.formats import deserialize

log = logging.getLogger(__name__)

STATISTICS = ("min", "max", "mean", "current")
DTYPES = (
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)


def load(path: str | Path) -> dict[str, Any]:
    """Load a checkpoint of Hookline, MMEngine or MMCV as plain data, on the CPU.

    History buffers become `{"log_history": …, "count_history": …, "max_length": …}`, arrays become
    tensors, and configs become dicts. Raises CheckpointError if the file holds other classes.
    """
    try:
        return load_checkpoint(path)
    except UnsafeCheckpoint:
        pass  # Read it below, with a few more classes admitted.
    except CheckpointError as error:
        if not Path(path).is_file():
            raise
        # The file was named, and its owner may have edited it; a torn file is refused below.
        log.warning("%s; it is read because it was named", error)
    with open(path, "rb") as file, torch.serialization.safe_globals(_admitted()):
        checkpoint = deserialize(file, str(path))
    log.info("%s: read with the restricted unpickler", path)
    return {key: as_plain(value) for key, value in checkpoint.items()}


class History:
    """Replaces MMEngine's HistoryBuffer."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def to_plain(self) -> dict[str, Any]:
        """Return the history as tensors."""
        values = np.asarray(self.state.get("_log_history", ()))
        counts = np.asarray(self.state.get("_count_history", ()))
        return {
            "log_history": torch.tensor(values.astype(np.float64)),
            "count_history": torch.tensor(counts.astype(np.int64)),
            "max_length": int(self.state.get("max_length", 1_000_000)),
        }


class _Statistic:
    """Replaces a method of HistoryBuffer, to which such files refer; it is never called."""


def _attribute(owner: Any, name: str) -> Any:
    """Replace `getattr`, with which such files refer to methods of the history buffer."""
    if owner is not History or name not in STATISTICS:
        raise ValueError(f"getattr({owner!r}, {name!r}) is refused")
    return _Statistic()


def _config(values: Any = (), *others: Any) -> dict[str, Any]:
    """Replace ConfigDict and similar classes."""
    return dict(values)


def _path(*parts: str) -> str:
    """Replace a path."""
    return "/".join(parts)


def _admitted() -> list[Any]:
    """Return the admitted names, each with its replacement, as torch expects them."""
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
    # numpy 2 has moved the module, and files have either name.
    core: Any = getattr(np, "_core", None) or np.core
    arrays = core.multiarray
    for home in ("numpy.core.multiarray", "numpy._core.multiarray"):
        table[f"{home}.scalar"] = arrays.scalar
        table[f"{home}._reconstruct"] = arrays._reconstruct
    for name in DTYPES:
        kind = type(np.dtype(name))
        table[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return [(target, name) for name, target in table.items()]


def as_plain(value: Any, path: str = "", lost: list[str] | None = None) -> Any:
    """Return data that a checkpoint of Hookline may hold; None for values without a plain form.

    Args:
        value: The data.
        path: Its place in the checkpoint.
        lost: Receives the places of values without a plain form.
    """
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if isinstance(value, torch.Tensor) or type(value) in (type(None), bool, int, float, str, bytes):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy()) if value.dtype.kind in "biuf" else value.tolist()
    if isinstance(value, Counter):
        return value  # the milestones of MultiStepLR
    if isinstance(value, Mapping):
        return _plain_mapping(value, path, lost)
    if isinstance(value, (list, tuple)):
        parts = [as_plain(item, f"{path}[{index}]", lost) for index, item in enumerate(value)]
        return tuple(parts) if type(value) is tuple else parts
    if isinstance(value, (set, frozenset)):
        return sorted((as_plain(item, path, lost) for item in value), key=str)
    if lost is not None:
        lost.append(f"{path} ({type(value).__name__})")
    return None


def _plain_mapping(value: Mapping[Any, Any], path: str, lost: list[str] | None) -> dict[Any, Any]:
    items: dict[Any, Any] = {}
    if hasattr(value, "_metadata"):  # weights, with the versions of their modules
        items = OrderedDict()
        vars(items)["_metadata"] = as_plain(value._metadata)
    for given_key, item in value.items():
        key = given_key if type(given_key) in (str, int) else str(given_key)
        items[key] = as_plain(item, f"{path}.{key}" if path else str(key), lost)
    return items


__all__ = ["as_plain", "load"]
