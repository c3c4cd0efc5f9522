"""Boxes around objects, with labels that do not hide each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hookline.visual.canvas import Picture, label_size, shorten
from hookline.visual.colours import Colour, colour_of
from hookline.visual.grid import Tile
from hookline.visual.images import shape_text, zoom_for, zoomed

TILE = 256
Box = tuple[float, float, float, float]
FORMATS = ("xyxy", "xywh", "cxcywh")
FRACTIONS = 1.0  # how far from the middle of the image coordinates may be that are fractions of it: half an image over the edge


class Detections(NamedTuple):
    """What was found in one image; boxes are [N, 4] as left, top, right, bottom in pixels."""

    boxes: np.ndarray
    labels: np.ndarray
    scores: np.ndarray | None


@dataclass(frozen=True)
class BoxStyle:
    """How boxes look; a class has its own colour unless one is given for all."""

    names: Sequence[str] = ()
    palette: Sequence[Colour] = ()
    box_colour: Colour | None = None
    text_colour: Colour | None = None
    thickness: int = 2
    score_thr: float = 0.3


def box_tile(image: np.ndarray, found: Detections, style: BoxStyle, caption: str) -> Tile:
    """An image with boxes, those with the highest scores on top; boxes below the threshold are left out."""
    zoom = zoom_for(image, TILE)
    picture = Picture(zoomed(image, zoom).copy())
    taken: list[Box] = []
    order = range(len(found.boxes)) if found.scores is None else np.argsort(found.scores)
    shown = [index for index in order if found.scores is None or found.scores[index] >= style.score_thr]
    places: list[Box] = [tuple((found.boxes[index] * zoom).tolist()) for index in shown]
    colours = [style.box_colour or colour_of(int(found.labels[index]), style.palette) for index in shown]
    for place, colour in zip(places, colours, strict=True):
        picture.outline(*place, colour, style.thickness)
    for index, place, colour in reversed(list(zip(shown, places, colours, strict=True))):
        text = shorten(_label(found, index, style.names), 11, picture.pixels.shape[1] - 8)
        left, top = _free_place(place, label_size(text), picture.pixels.shape[:2], taken)
        picture.label(left, top, text, colour, ink=style.text_colour)
    return Tile(picture.pixels, [(f"{caption}: {len(shown)}", (0, 0, 0))], texts=picture.texts)


def read_detections(value: Any, sizes: Sequence[tuple[int, int]], box_format: str, what: str) -> list[Detections]:
    """What was found in each image (`sizes` are heights and widths), out of a list of dicts or one dict of stacked arrays.

    They have `boxes`, and perhaps `labels` and `scores`. A label below 0 marks padding. Coordinates are fractions of the image
    where those of the whole batch are from 0 to 1, or as little beyond that as boxes are that reach over the edge.
    """
    if value is None:
        raise ValueError(f"the step gave no {what!r} to draw")
    if isinstance(value, Mapping):
        if "boxes" not in value:
            raise ValueError(f"{what}: expected a dict with 'boxes', got one with {', '.join(map(repr, value)) or 'nothing'}")
        value = [{key: part[index] for key, part in value.items()} for index in range(len(value["boxes"]))]
    if not isinstance(value, (list, tuple)) or any(not isinstance(one, Mapping) or "boxes" not in one for one in value):
        kind = type(value[0]).__name__ if isinstance(value, (list, tuple)) and value else type(value).__name__
        raise ValueError(f"{what}: expected for each image a dict with 'boxes', 'labels' and perhaps 'scores', got {kind}")
    if len(value) < len(sizes):
        raise ValueError(f"{what}: {len(value)} for {len(sizes)} images")
    found = [_read_one(one, what) for one, _ in zip(value, sizes, strict=False)]
    given = np.concatenate([np.zeros((0, 4)), *(one.boxes for one in found)])  # as they came: corners reach further than centres
    scaled = bool((np.abs(given - 0.5) <= FRACTIONS).all())
    return [_placed(one, box_format, size, scaled) for one, size in zip(found, sizes, strict=True)]


def _read_one(one: Mapping[str, Any], what: str) -> Detections:
    """What was found in one image, with its boxes as they came."""
    boxes = np.asarray(one["boxes"], dtype=np.float64)
    if boxes.size == 0:
        boxes = boxes.reshape(0, 4)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"{what}: expected boxes [N, 4], got {shape_text(boxes)}")
    labels = np.asarray(one.get("labels", np.zeros(len(boxes)))).reshape(-1)
    scores = None if one.get("scores") is None else np.asarray(one["scores"], dtype=np.float64).reshape(-1)
    for name, array in (("labels", labels), ("scores", scores)):
        if array is not None and len(array) != len(boxes):
            raise ValueError(f"{what}: {len(boxes)} boxes, but {len(array)} {name}")
    real = (labels >= 0) & np.isfinite(boxes).all(1)
    return Detections(boxes[real], labels[real].astype(int), None if scores is None else scores[real])


def _placed(one: Detections, box_format: str, size: tuple[int, int], scaled: bool) -> Detections:
    """The same with corners in pixels, inside of the image."""
    limits = np.array([size[1], size[0], size[1], size[0]])
    return one._replace(boxes=np.clip(_corners(one.boxes, box_format) * (limits if scaled else 1), 0, limits))


def _corners(boxes: np.ndarray, box_format: str) -> np.ndarray:
    if box_format == "xyxy":
        return boxes
    place, size = boxes[:, :2], boxes[:, 2:]
    start = place if box_format == "xywh" else place - size / 2
    return np.concatenate([start, start + size], axis=1)


def _label(found: Detections, index: int, names: Sequence[str]) -> str:
    label = int(found.labels[index])
    name = names[label] if label < len(names) else str(label)
    return name if found.scores is None else f"{name} {found.scores[index]:.0%}"


def _free_place(box: Box, size: tuple[int, int], limits: tuple[int, ...], taken: list[Box]) -> tuple[float, float]:
    """Above the box, else inside, else below, else at its other end: the first place that hides no other label."""
    (left, top, right, bottom), (width, height) = box, size
    candidates = [(x, y) for x in (left, right - width) for y in (top - height, top, bottom, bottom - height)]
    places = [(min(max(x, 0.0), limits[1] - width), min(max(y, 0.0), limits[0] - height)) for x, y in candidates]
    free = (place for place in places if not any(_overlap((*place, place[0] + width, place[1] + height), other) for other in taken))
    x, y = next(free, places[0])
    taken.append((x, y, x + width, y + height))
    return x, y


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
