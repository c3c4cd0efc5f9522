"""Synthetic images of circles, squares and triangles, for detection and segmentation."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset
from hookline.errors import ConfigError, require_choice

SHAPES = ("circle", "square", "triangle")
MIN_SIZE = 32  # pixels
COUNTS = {"train": 512, "val": 128, "test": 128}
MAX_SHAPES = 3  # in one image
MIN_OVERLAP = 0.5  # of a predicted box that counts as found

Split = Literal["train", "val", "test"]
Prediction = dict[str, Tensor]


@DATASETS.register("shapes_segmentation")
class ShapesSegmentation(ArrayDataset):
    """Images of shapes on a noisy background, with a mask [size, size] each.

    The classes of the mask are background, circle, square and triangle.

    Args:
        split: The part of the data.
        size: The width and height of an image in pixels.
        count: The number of images; 512 for training and 128 for validation and test by default.
    """

    def __init__(self, split: Split = "train", size: int = 64, count: int | None = None) -> None:
        scenes = make_scenes(split, size, count)
        super().__init__(
            torch.from_numpy(scenes.images),
            torch.from_numpy(scenes.masks).long(),
            scale=1 / 255,
            class_names=["background", *SHAPES],
        )


@DATASETS.register("shapes_detection")
class ShapesDetection(Dataset[tuple[Tensor, dict[str, Tensor]]]):
    """The images of `ShapesSegmentation` with boxes.

    A target has `boxes` [3, 4] as left, top, right and bottom in pixels, and `labels` [3], which
    are -1 for missing boxes.

    Args:
        split: The part of the data.
        size: The width and height of an image in pixels.
        count: The number of images; 512 for training and 128 for validation and test by default.
    """

    deterministic = True

    def __init__(self, split: Split = "train", size: int = 64, count: int | None = None) -> None:
        scenes = make_scenes(split, size, count)
        self.images = torch.from_numpy(scenes.images)
        self.boxes = torch.from_numpy(scenes.boxes)
        self.labels = torch.from_numpy(scenes.labels)
        self.class_names = list(SHAPES)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, dict[str, Tensor]]:
        return self.images[index] / 255, {"boxes": self.boxes[index], "labels": self.labels[index]}

    def evaluate(self, predictions: list[Prediction]) -> dict[str, float]:
        """Return `ap50`: the average precision at an overlap of 0.5, as the mean over classes."""
        precisions = []
        for label in range(len(SHAPES)):
            precisions.append(_average_precision(predictions, self.boxes, self.labels, label))
        return {"ap50": sum(precisions) / len(precisions)}


class Scenes(NamedTuple):
    """Synthetic images with masks and boxes.

    Args:
        images: Bytes, [N, 3, size, size].
        masks: The class of each pixel, [N, size, size].
        boxes: [N, 3, 4].
        labels: The class of each box, [N, 3].
    """

    images: np.ndarray
    masks: np.ndarray
    boxes: np.ndarray
    labels: np.ndarray


def make_scenes(split: str, size: int, count: int | None) -> Scenes:
    """Make images that depend on split, size and index alone."""
    require_choice("shapes", "split", split, COUNTS)
    if size < MIN_SIZE:
        message = f"'size' must be at least {MIN_SIZE}"
        raise ConfigError(message, component="shapes", parameter="size", value=size)
    random = np.random.default_rng([list(COUNTS).index(split), size])
    scenes = [_make_scene(random, size) for _ in range(count or COUNTS[split])]
    images, masks, boxes, labels = zip(*scenes, strict=True)
    return Scenes(np.stack(images), np.stack(masks), np.stack(boxes), np.stack(labels))


def _make_scene(random: np.random.Generator, size: int) -> Scenes:
    """Draw one image. The order of the random numbers defines the data: do not change it."""
    mask = np.zeros((size, size), dtype=np.uint8)
    image = random.uniform(40, 180, (1, 1, 3)) + random.normal(0, 12, (size, size, 3))
    boxes = np.zeros((MAX_SHAPES, 4), dtype=np.float32)
    labels = np.full(MAX_SHAPES, -1, dtype=np.int64)
    for index in range(random.integers(1, MAX_SHAPES + 1)):
        label = int(random.integers(len(SHAPES)))
        radius = int(random.integers(size // 10, size // 5))
        x, y = random.integers(radius + 1, size - radius - 1, 2)
        rows = slice(max(0, y - radius - 1), y + radius + 2)
        columns = slice(max(0, x - radius - 1), x + radius + 2)
        if (mask[rows, columns] > 0).any():
            continue  # shapes do not overlap
        inside = _pixels_of(SHAPES[label], size, x, y, radius)
        contrast = random.uniform(60, 130, 3) * random.choice([-1, 1], 3)
        color = (image.mean((0, 1)) + contrast) % 255
        image[inside] = color + random.normal(0, 8, (inside.sum(), 3))
        mask[inside] = label + 1
        boxes[index] = _box_of(inside)
        labels[index] = label
    pixels = np.clip(image, 0, 255).astype(np.uint8)
    return Scenes(pixels.transpose(2, 0, 1), mask, boxes, labels)


def _pixels_of(shape: str, size: int, x: int, y: int, radius: int) -> np.ndarray:
    """Return which pixels of an image belong to a shape."""
    rows, columns = np.ogrid[:size, :size]
    across = columns - x
    down = rows - y
    if shape == "circle":
        return np.asarray(across**2 + down**2 <= radius**2)
    if shape == "square":
        return np.asarray((np.abs(across) <= radius) & (np.abs(down) <= radius))
    return np.asarray((np.abs(across) <= (down + radius) / 2) & (np.abs(down) <= radius))


def _box_of(inside: np.ndarray) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the pixels of a shape."""
    rows = np.flatnonzero(inside.any(1))
    columns = np.flatnonzero(inside.any(0))
    return columns[0], rows[0], columns[-1] + 1, rows[-1] + 1


def _average_precision(
    predictions: list[Prediction], boxes: Tensor, labels: Tensor, label: int
) -> float:
    """Return the area under the curve of precision over recall for one class.

    A true box counts once: for the most certain prediction that overlaps it.
    """
    found: set[tuple[int, int]] = set()
    hits = []
    for _, image, box in _by_certainty(predictions, label):
        best_overlap = 0.0
        best_index = -1
        for index in range(MAX_SHAPES):
            overlap = _overlap(box, boxes[image, index])
            # On a tie the later box wins.
            if labels[image, index] == label and overlap >= best_overlap:
                best_overlap = overlap
                best_index = index
        is_hit = best_overlap >= MIN_OVERLAP and (image, best_index) not in found
        hits.append(is_hit)
        if is_hit:
            found.add((image, best_index))
    total = int((labels[: len(predictions)] == label).sum())
    if not total or not hits:
        return 0.0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float((envelope * np.array(hits)).sum() / total)


def _by_certainty(predictions: list[Prediction], label: int) -> list[tuple[float, int, Tensor]]:
    """Return score, image and box of all predictions of a class, the most certain first."""
    found = []
    for image, prediction in enumerate(predictions):
        is_label = prediction["labels"] == label
        boxes = prediction["boxes"][is_label].cpu()
        scores = prediction["scores"][is_label].tolist()
        for box, score in zip(boxes, scores, strict=True):
            found.append((score, image, box))
    return sorted(found, key=lambda item: -item[0])


def _overlap(one: Tensor, other: Tensor) -> float:
    """Return the intersection of two boxes over their union."""
    sides = torch.minimum(one[2:], other[2:]) - torch.maximum(one[:2], other[:2])
    common = float(sides.clamp_min(0).prod())
    areas = float((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod())
    return common / (areas - common) if areas > common else 0.0
