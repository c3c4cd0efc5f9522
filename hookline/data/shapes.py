"""Pictures of circles, squares and triangles, made up: small data for detection and segmentation."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from hookline.data import DATASETS
from hookline.data.arrays import ArrayDataset

SHAPES = ("circle", "square", "triangle")
COUNTS = {"train": 512, "val": 128, "test": 128}
MOST = 3  # shapes in one image

Split = Literal["train", "val", "test"]


@DATASETS.register("shapes_segmentation")
class ShapesSegmentation(ArrayDataset):
    """Images of shapes on a noisy ground, with a mask [size, size] each: 0 is background, then circle, square, triangle."""

    def __init__(self, split: Split = "train", size: int = 64, count: int | None = None) -> None:
        scenes = make_scenes(split, size, count)
        names = ["background", *SHAPES]
        super().__init__(torch.from_numpy(scenes.images), torch.from_numpy(scenes.masks).long(), scale=1 / 255, class_names=names)


@DATASETS.register("shapes_detection")
class ShapesDetection(Dataset[tuple[Tensor, dict[str, Tensor]]]):
    """The same images with boxes: `boxes` [3, 4] as left, top, right, bottom in pixels, `labels` [3], -1 where there is none."""

    deterministic = True

    def __init__(self, split: Split = "train", size: int = 64, count: int | None = None) -> None:
        scenes = make_scenes(split, size, count)
        self.images, self.boxes, self.labels = (torch.from_numpy(part) for part in (scenes.images, scenes.boxes, scenes.labels))
        self.class_names = list(SHAPES)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, dict[str, Tensor]]:
        return self.images[index] / 255, {"boxes": self.boxes[index], "labels": self.labels[index]}

    def evaluate(self, predictions: list[dict[str, Tensor]]) -> dict[str, float]:
        """`ap50`: the average precision at an overlap of 0.5, mean over the classes."""
        each = [_average_precision(predictions, self.boxes, self.labels, label) for label in range(len(SHAPES))]
        return {"ap50": sum(each) / len(each)}


class Scenes(NamedTuple):
    """Images [N, 3, size, size] of bytes, masks [N, size, size], boxes [N, 3, 4] and labels [N, 3]."""

    images: np.ndarray
    masks: np.ndarray
    boxes: np.ndarray
    labels: np.ndarray


def make_scenes(split: str, size: int, count: int | None) -> Scenes:
    """Scenes that depend on split, size and place alone."""
    if split not in COUNTS:
        raise ValueError(f"shapes: split must be one of {', '.join(COUNTS)}, got {split!r}")
    if size < 32:
        raise ValueError(f"shapes: size must be at least 32, got {size}")
    random = np.random.default_rng([list(COUNTS).index(split), size])
    return Scenes(*(np.stack(parts) for parts in zip(*(_scene(random, size) for _ in range(count or COUNTS[split])), strict=True)))


def _scene(random: np.random.Generator, size: int) -> tuple[Any, ...]:
    mask = np.zeros((size, size), dtype=np.uint8)
    image = random.uniform(40, 180, (1, 1, 3)) + random.normal(0, 12, (size, size, 3))
    boxes, labels = np.zeros((MOST, 4), dtype=np.float32), np.full(MOST, -1, dtype=np.int64)
    for place in range(random.integers(1, MOST + 1)):
        label, radius = int(random.integers(len(SHAPES))), int(random.integers(size // 10, size // 5))
        x, y = random.integers(radius + 1, size - radius - 1, 2)
        inside = _inside(SHAPES[label], size, x, y, radius)
        if (mask[max(0, y - radius - 1) : y + radius + 2, max(0, x - radius - 1) : x + radius + 2] > 0).any():
            continue  # shapes do not overlap
        colour = (image.mean((0, 1)) + random.uniform(60, 130, 3) * random.choice([-1, 1], 3)) % 255
        image[inside] = colour + random.normal(0, 8, (inside.sum(), 3))
        mask[inside] = label + 1
        rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
        boxes[place], labels[place] = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1), label
    return np.clip(image, 0, 255).astype(np.uint8).transpose(2, 0, 1), mask, boxes, labels


def _inside(shape: str, size: int, x: int, y: int, radius: int) -> np.ndarray:
    rows, columns = np.ogrid[:size, :size]
    across, down = columns - x, rows - y
    if shape == "circle":
        return np.asarray(across**2 + down**2 <= radius**2)
    if shape == "square":
        return np.asarray((np.abs(across) <= radius) & (np.abs(down) <= radius))
    return np.asarray((np.abs(across) <= (down + radius) / 2) & (np.abs(down) <= radius))


def _average_precision(predictions: list[dict[str, Tensor]], boxes: Tensor, labels: Tensor, label: int) -> float:
    """The area under the curve of precision over recall; each true box counts for the first prediction that meets it."""
    found = []
    for number, one in enumerate(predictions):
        for box, score in zip(one["boxes"][one["labels"] == label].cpu(), one["scores"][one["labels"] == label].tolist(), strict=True):
            found.append((score, number, box))
    met, hits = set(), []
    for _, number, box in sorted(found, key=lambda item: -item[0]):
        overlaps = [(_overlap(box, boxes[number, place]), place) for place in range(MOST) if labels[number, place] == label]
        overlap, place = max(overlaps, default=(0.0, -1))
        hits.append(overlap >= 0.5 and (number, place) not in met)
        met.add((number, place) if overlap >= 0.5 else (number, -1))
    true = np.cumsum(hits)
    total = int((labels[: len(predictions)] == label).sum())
    if not total or not hits:
        return 0.0
    precision = np.maximum.accumulate((true / np.arange(1, len(hits) + 1))[::-1])[::-1]
    return float((precision * np.array(hits)).sum() / total)


def _overlap(one: Tensor, other: Tensor) -> float:
    """Intersection over union."""
    sides = torch.minimum(one[2:], other[2:]) - torch.maximum(one[:2], other[:2])
    common = float(sides.clamp_min(0).prod())
    areas = float((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod())
    return common / (areas - common) if areas > common else 0.0
