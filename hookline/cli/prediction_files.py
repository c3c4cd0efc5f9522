"""Files of predictions: tensors, arrays, JSON lines and parquet, with a row for each sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hookline.cli.errors import CommandLineError
from hookline.errors import Suggestion

COLUMN = "prediction"  # of predictions that are not mappings
INSTALL = Suggestion(advice="pip install pyarrow")


def write_predictions(predictions: Any, target: Path) -> None:
    """Write the predictions of all samples, in their order, to a file of a kind in `SUFFIXES`.

    Raises:
        CommandLineError: If they do not fit into the file, or it cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[target.suffix](predictions, target)
    except OSError as error:
        reason = error.strerror or error
        raise CommandLineError(f"cannot write {target}: {reason}", parameter="--output") from error


def _write_tensors(predictions: Any, target: Path) -> None:
    torch.save(predictions, target)


def _write_array(predictions: Any, target: Path) -> None:
    if not isinstance(predictions, Tensor):
        message = "predictions of different shapes cannot be an array; choose a file .pt or .jsonl"
        raise CommandLineError(message, parameter="--output")
    np.save(target, _as_array(predictions))


def _write_arrays(predictions: Any, target: Path) -> None:
    arrays: dict[str, Any] = {}
    for name, values in _columns(predictions).items():
        shapes = {value.shape if isinstance(value, Tensor) else None for value in values}
        if len(shapes) > 1:
            message = f"{name!r} has different shapes and cannot be an array; choose .pt or .jsonl"
            raise CommandLineError(message, parameter="--output")
        is_tensor = isinstance(values[0], Tensor)
        arrays[name] = _as_array(torch.stack(values)) if is_tensor else np.asarray(values)
    np.savez(target, **arrays)


def _write_lines(predictions: Any, target: Path) -> None:
    with open(target, "w", encoding="utf-8") as file:
        for prediction in predictions:
            file.write(json.dumps(_as_row(prediction), ensure_ascii=False) + "\n")


def _write_parquet(predictions: Any, target: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        message = "a file .parquet needs the package 'pyarrow'"
        raise CommandLineError(message, parameter="--output", suggestion=INSTALL) from error
    rows = [_as_row(prediction) for prediction in predictions]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), target)


def _columns(predictions: Any) -> dict[str, list[Any]]:
    rows = [each if isinstance(each, Mapping) else {COLUMN: each} for each in predictions]
    return {str(name): [row[name] for row in rows] for name in rows[0]}


def _as_row(prediction: Any) -> dict[str, Any]:
    named = prediction if isinstance(prediction, Mapping) else {COLUMN: prediction}
    return {str(name): _plain(value) for name, value in named.items()}


def _plain(value: Any) -> Any:
    """Return tensors as numbers or lists, through any nesting of containers."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _as_array(values: Tensor) -> np.ndarray[Any, Any]:
    return values.float().numpy() if values.is_floating_point() else values.numpy()


WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".pt": _write_tensors,
    ".npy": _write_array,
    ".npz": _write_arrays,
    ".jsonl": _write_lines,
    ".parquet": _write_parquet,
}
SUFFIXES = tuple(WRITERS)
