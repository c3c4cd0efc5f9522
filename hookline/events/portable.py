"""Convert records to plain values: images to bytes, histograms to counts and edges."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from hookline.events.outbox import Record

BINS = 64
CHANNELS = (1, 3, 4)
VISIBLE = 0.01  # a difference of brightness, from 0 to 1, that one can see


class Histogram(NamedTuple):
    """The counts of values in `n` bins between `n + 1` edges."""

    counts: Any
    edges: Any


def portable(record: Record) -> Record:
    """Return a record with a plain value, independent of its source.

    Images become byte arrays [H, W, 3 or 4], and so do figures; histograms become counts and edges.
    """
    if record.kind == "figure":
        return record._replace(kind="image", value=_draw_figure(record.value))
    if record.kind == "image":
        return record._replace(value=as_image(record.value))
    if record.kind == "histogram":
        return record._replace(value=as_histogram(record.value))
    if record.kind == "artifact":
        return record._replace(value=Path(record.value))
    return record._replace(value=str(record.value))


def as_image(value: Any) -> np.ndarray[Any, Any]:
    """Return an image as bytes [H, W, 3 or 4]; numbers from 0 to 1 are scaled to 0 to 255."""
    array = _to_array(value)
    if array.ndim == 3 and array.shape[0] in CHANNELS and array.shape[2] not in CHANNELS:
        array = array.transpose(1, 2, 0)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in CHANNELS:
        shape = tuple(np.shape(value))
        hint = "; record one image of the batch" if array.ndim == 4 else ""
        raise ValueError(
            f"expected an image HW, HWC or CHW with 1, 3 or 4 channels, got the shape {shape}{hint}"
        )
    if array.dtype.kind not in "iu":
        array = array.astype(np.float64) * 255
    if array.dtype != np.uint8:
        array = np.nan_to_num(array).clip(0, 255).astype(np.uint8)
    if array.shape[2] == 1:
        array = array.repeat(3, axis=2)
    return np.ascontiguousarray(array)


def range_beyond(value: Any) -> tuple[float, float] | None:
    """Return the least and the greatest number of an image if `as_image` clips them visibly.

    Args:
        value: An image. One of whole numbers is not looked at.
    """
    array = _to_array(value)
    if array.dtype.kind != "f":
        return None
    finite = array[np.isfinite(array)]
    if finite.size == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    is_within = low >= -VISIBLE and high <= 1 + VISIBLE
    return None if is_within else (low, high)


def as_histogram(value: Any) -> Histogram:
    """Count the finite values of an array or tensor, or pass counts and edges on."""
    if isinstance(value, tuple) and len(value) == 2:
        return Histogram(np.asarray(value[0]), np.asarray(value[1], dtype=np.float64))
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().double()
    values = np.asarray(value, dtype=np.float64).ravel()
    counts, edges = np.histogram(values[np.isfinite(values)], bins=BINS)
    return Histogram(counts, edges)


def to_png(image: np.ndarray[Any, Any]) -> bytes:
    """Return an image [H, W, 3 or 4] of bytes as a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "png", compress_level=1)
    return file.getvalue()


def to_row(record: Record) -> dict[str, Any]:
    """Return a portable record as a dict that JSON can hold."""
    row = record._asdict()
    if record.kind == "image":
        row["value"] = base64.b64encode(to_png(record.value)).decode()
    elif record.kind == "histogram":
        row["value"] = [record.value.counts.tolist(), record.value.edges.tolist()]
    else:
        row["value"] = str(record.value)
    return row


def from_row(row: Mapping[str, Any]) -> Record:
    """Return the record that `to_row` was given."""
    value = row["value"]
    if row["kind"] == "image":
        from PIL import Image

        value = np.asarray(Image.open(io.BytesIO(base64.b64decode(value))))
    elif row["kind"] == "histogram":
        value = Histogram(np.asarray(value[0]), np.asarray(value[1]))
    elif row["kind"] == "artifact":
        value = Path(value)
    fields = {name: row[name] for name in Record._fields if name in row}
    return Record(**{**fields, "value": value})


def _to_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.is_floating_point():
            value = value.float()  # NumPy has no bfloat16.
    return np.asarray(value)


def _draw_figure(figure: Any) -> np.ndarray[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())[:, :, :3]
