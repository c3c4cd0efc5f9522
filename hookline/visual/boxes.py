"""Boxes around objects, with labels that do not hide each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hookline.visual.canvas import Rectangle, Shape, Text
from hookline.visual.classification import class_name
from hookline.visual.colors import BLACK, Color, class_color, contrasting_color
from hookline.visual.grid import Tile
from hookline.visual.images import enlarge_or_shrink, shape_text, zoom_to
from hookline.visual.text import shorten, text_width

TILE_SIZE = 256  # pixels
LABEL_SIZE = 11  # pixels
LABEL_PADDING = 3  # pixels
FORMATS = ("xyxy", "xywh", "cxcywh")

# Coordinates are fractions of an image if none is farther than this from its center: a box may
# reach over the edge by half an image.
MAX_FRACTION_FROM_CENTER = 1.0


class Detections(NamedTuple):
    """Objects found in one image. Boxes [N, 4] are left, top, right and bottom in pixels."""

    boxes: np.ndarray
    labels: np.ndarray
    scores: np.ndarray | None


@dataclass(frozen=True)
class BoxStyle:
    """Looks of boxes.

    Args:
        class_names: Names of the classes; a class without one is shown by its number.
        palette: Colors of the classes.
        box_color: One color for all boxes; by default each class has its own.
        text_color: Color of the labels' text; by default black or white.
        score_thr: Boxes with a lower score are not drawn.
    """

    class_names: Sequence[str] = ()
    palette: Sequence[Color] = ()
    box_color: Color | None = None
    text_color: Color | None = None
    thickness: int = 2
    score_thr: float = 0.3


class LabelBounds(NamedTuple):
    """The plate that a label is written on."""

    left: float
    top: float
    width: float
    height: float

    def overlaps(self, other: LabelBounds) -> bool:
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )


def make_box_tile(image: np.ndarray, found: Detections, style: BoxStyle, caption: str) -> Tile:
    """Return an image with boxes, those with the highest scores on top."""
    zoom = zoom_to(image, TILE_SIZE)
    pixels = enlarge_or_shrink(image, zoom)
    order = _drawing_order(found, style.score_thr)
    boxes = found.boxes * zoom
    shapes: list[Shape] = []
    for index in order:
        left, top, right, bottom = boxes[index].tolist()
        color = _box_color(found, index, style)
        shapes.append(Rectangle(left, top, right - left, bottom - top, color, style.thickness))
    # The best detections choose the places of their labels first.
    taken: list[LabelBounds] = []
    for index in reversed(order):
        text = shorten(_label_text(found, index, style), LABEL_SIZE, pixels.shape[1] - 8)
        bounds = _place_label(boxes[index].tolist(), label_size(text), pixels.shape, taken)
        taken.append(bounds)
        color = _box_color(found, index, style)
        text_color = style.text_color or contrasting_color(color)
        middle = bounds.top + bounds.height / 2
        shapes.append(Rectangle(*bounds, color))
        shapes.append(Text(bounds.left + LABEL_PADDING, middle, text, LABEL_SIZE, text_color))
    objects = "object" if len(order) == 1 else "objects"
    return Tile(pixels, [(f"{caption}: {len(order)} {objects}", BLACK)], shapes=shapes)


def label_size(text: str) -> tuple[int, int]:
    """Return width and height of the plate of a label."""
    return round(text_width(text, LABEL_SIZE)) + 2 * LABEL_PADDING, LABEL_SIZE + 4


def read_detections(
    value: Any, sizes: Sequence[tuple[int, int]], box_format: str, field: str
) -> list[Detections]:
    """Read the detections of each image.

    A label below 0 marks padding. Coordinates are fractions of the image if those of the whole
    batch are between 0 and 1, or as little beyond as boxes that reach over the edge.

    Args:
        value: A dict for each image, or one dict of stacked arrays, with `boxes` and optionally
            `labels` and `scores`.
        sizes: Height and width of each image.
        field: `targets` or `predictions`, for error messages.
    """
    per_image = _split_by_image(value, field)
    if len(per_image) < len(sizes):
        raise ValueError(f"{field}: {len(per_image)} for {len(sizes)} images")
    found = []
    are_fractions = True
    for one in per_image[: len(sizes)]:
        detections = _read_one(one, field)
        found.append(detections)
        # Look at the numbers before their conversion: corners reach farther than centers.
        distances = np.abs(detections.boxes - 0.5)
        are_fractions = are_fractions and bool((distances <= MAX_FRACTION_FROM_CENTER).all())
    result = []
    for detections, (height, width) in zip(found, sizes, strict=True):
        limits = np.array([width, height, width, height])
        boxes = _to_corners(detections.boxes, box_format)
        if are_fractions:
            boxes = boxes * limits
        result.append(detections._replace(boxes=np.clip(boxes, 0, limits)))
    return result


def _split_by_image(value: Any, field: str) -> Sequence[Mapping[str, Any]]:
    if value is None:
        raise ValueError(f"the step returned no {field!r} to draw")
    if isinstance(value, Mapping):
        if "boxes" not in value:
            keys = ", ".join(map(repr, value)) or "nothing"
            raise ValueError(f"{field}: expected a dict with 'boxes', got one with {keys}")
        per_image = []
        for index in range(len(value["boxes"])):
            per_image.append({key: part[index] for key, part in value.items()})
        return per_image
    expected = f"{field}: expected a dict with 'boxes', 'labels' and maybe 'scores' for each image"
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{expected}, got {type(value).__name__}")
    for one in value:
        if not isinstance(one, Mapping) or "boxes" not in one:
            raise ValueError(f"{expected}, got {type(one).__name__}")
    return value


def _read_one(one: Mapping[str, Any], field: str) -> Detections:
    """Read the detections of one image, with boxes in the format that they have."""
    boxes = np.asarray(one["boxes"], dtype=np.float64)
    if boxes.size == 0:
        boxes = boxes.reshape(0, 4)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"{field}: expected boxes [N, 4], got {shape_text(boxes)}")
    labels = np.asarray(one.get("labels", np.zeros(len(boxes)))).reshape(-1)
    _check_length(field, "labels", labels, boxes)
    is_real = (labels >= 0) & np.isfinite(boxes).all(1)
    scores = None
    if one.get("scores") is not None:
        scores = np.asarray(one["scores"], dtype=np.float64).reshape(-1)
        _check_length(field, "scores", scores, boxes)
        scores = scores[is_real]
    return Detections(boxes[is_real], labels[is_real].astype(int), scores)


def _check_length(field: str, name: str, values: np.ndarray, boxes: np.ndarray) -> None:
    if len(values) != len(boxes):
        raise ValueError(f"{field}: {len(boxes)} boxes, but {len(values)} {name}")


def _to_corners(boxes: np.ndarray, box_format: str) -> np.ndarray:
    """Convert boxes to left, top, right and bottom."""
    if box_format == "xyxy":
        return boxes
    start = boxes[:, :2]
    size = boxes[:, 2:]
    if box_format == "cxcywh":
        start = start - size / 2
    return np.concatenate([start, start + size], axis=1)


def _drawing_order(found: Detections, score_thr: float) -> list[int]:
    """Return the indices of the boxes to draw, the highest score last."""
    if found.scores is None:
        return list(range(len(found.boxes)))
    order = np.argsort(found.scores)
    return [int(index) for index in order if found.scores[index] >= score_thr]


def _box_color(found: Detections, index: int, style: BoxStyle) -> Color:
    return style.box_color or class_color(found.labels[index], style.palette)


def _label_text(found: Detections, index: int, style: BoxStyle) -> str:
    name = class_name(int(found.labels[index]), style.class_names)
    if found.scores is None:
        return name
    return f"{name} {found.scores[index]:.0%}"


def _place_label(
    box: list[float],
    size: tuple[int, int],
    image_shape: tuple[int, ...],
    taken: Sequence[LabelBounds],
) -> LabelBounds:
    """Place a label above its box, else inside, below, at the right end, or in any row beside it.

    Returns the first place that hides no other label, or the one above the box.
    """
    left, top, right, bottom = box
    width, height = size
    candidates = []
    near = (top - height, top, bottom, bottom - height)
    rows = np.arange(0, image_shape[0] - height, height)
    rows = rows[np.argsort(np.abs(rows - top))]
    for x in (left, right - width):
        for y in (*near, *rows):
            x_inside = min(max(x, 0.0), image_shape[1] - width)
            y_inside = min(max(y, 0.0), image_shape[0] - height)
            candidates.append(LabelBounds(x_inside, y_inside, width, height))
    for bounds in candidates:
        if not any(bounds.overlaps(other) for other in taken):
            return bounds
    return candidates[0]
