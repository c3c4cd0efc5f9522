"""A small network that detects objects by their centers."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hookline.models import MODELS

STRIDE = 4  # pixels of a grid cell
MAX_DETECTIONS = 16  # in one image


class Objects(NamedTuple):
    """The true objects of a batch, in cells of the grid.

    Args:
        heat: The target of the class scores: bells around the centers, [N, num_classes, H, W].
        image: The image of each object.
        x: The column of its center.
        y: The row of its center.
        geometry: Its width and height, and the offset of the center in its cell, [M, 4].
    """

    heat: Tensor
    image: Tensor
    x: Tensor
    y: Tensor
    geometry: Tensor


@MODELS.register("detector")
class Detector(nn.Module):
    """A detector of centers on a grid of a quarter of the image's size, with class and size.

    Batches are `(images, {"boxes": [N, M, 4], "labels": [N, M]})`. Boxes are left, top, right and
    bottom; the label of a missing box is -1. The predictions of an image are a dict with `boxes`,
    `labels` and `scores`. The method is that of "Objects as Points".

    Args:
        in_channels: The channels of an image; those of the dataset in a config, else 3.
        num_classes: The number of classes; that of the dataset in a config, else 1.
        width: The channels of the first convolution.
    """

    def __init__(
        self, in_channels: int | None = None, num_classes: int | None = None, width: int = 32
    ) -> None:
        super().__init__()
        self.num_classes = 1 if num_classes is None else num_classes
        self.features = nn.Sequential(
            *_block(3 if in_channels is None else in_channels, width, stride=2),
            *_block(width, 2 * width, stride=2),
            *_block(2 * width, 2 * width),
            *_block(2 * width, 2 * width),
        )
        self.head = nn.Conv2d(2 * width, self.num_classes + 4, 1)
        assert self.head.bias is not None
        nn.init.constant_(self.head.bias[: self.num_classes], -4.0)  # most cells are empty

    def forward(self, images: Tensor) -> Tensor:
        """Return [N, num_classes + 4, H / 4, W / 4]: class scores, width, height and offset."""
        raw: Tensor = self.head(self.features(images))
        return raw

    def train_step(self, batch: Any) -> dict[str, Any]:
        """Return the loss and the predictions of a training batch."""
        return self._step(batch)

    def val_step(self, batch: Any) -> dict[str, Any]:
        """Return the loss and the predictions of a validation batch."""
        return self._step(batch)

    def _step(self, batch: Any) -> dict[str, Any]:
        images, targets = batch
        raw = self(images)
        return {
            "loss": self.loss(raw, targets),
            "predictions": self.decode(raw.detach()),
            "targets": targets,
        }

    def loss(self, raw: Tensor, targets: dict[str, Tensor]) -> Tensor:
        """Return the focal loss of the centers plus the error of sizes and offsets at true ones."""
        objects = self.encode(raw, targets)
        scores = raw[:, : self.num_classes].sigmoid().clamp(1e-4, 1 - 1e-4)
        is_center = objects.heat == 1
        hit = -((1 - scores) ** 2) * scores.log() * is_center
        miss = -((1 - objects.heat) ** 4) * scores**2 * (1 - scores).log() * ~is_center
        predicted = raw[objects.image, self.num_classes :, objects.y, objects.x]
        geometry_error = F.l1_loss(predicted, objects.geometry, reduction="sum") * 0.5
        return (hit.sum() + miss.sum() + geometry_error) / max(len(objects.image), 1)

    def encode(self, raw: Tensor, targets: dict[str, Tensor]) -> Objects:
        """Return the true objects on the grid of the raw output."""
        image, index = (targets["labels"] >= 0).nonzero(as_tuple=True)
        boxes = targets["boxes"][image, index] / STRIDE
        labels = targets["labels"][image, index]
        centers = (boxes[:, :2] + boxes[:, 2:]) / 2
        sizes = boxes[:, 2:] - boxes[:, :2]
        rows, columns = raw.shape[2:]
        x = centers[:, 0].long().clamp(0, columns - 1)
        y = centers[:, 1].long().clamp(0, rows - 1)
        across = torch.arange(columns, device=raw.device)[None, None] - x[:, None, None]
        down = torch.arange(rows, device=raw.device)[None, :, None] - y[:, None, None]
        spread = (sizes.min(1).values / 6).clamp_min(0.5)[:, None, None]
        bells = (-(across**2 + down**2) / (2 * spread**2)).exp()
        heat = raw.new_zeros(len(raw), self.num_classes, rows, columns)
        for number, bell in enumerate(bells):
            where = (image[number], labels[number])
            heat[where] = torch.maximum(heat[where], bell)
        offsets = centers - torch.stack([x, y], 1)
        return Objects(heat, image, x, y, torch.cat([sizes, offsets], 1))

    def decode(self, raw: Tensor) -> list[dict[str, Tensor]]:
        """Return the boxes at the peaks of the class scores, for each image."""
        rows, columns = raw.shape[2:]
        scores = raw[:, : self.num_classes].sigmoid()
        peaks = scores * (scores == F.max_pool2d(scores, 3, 1, 1))
        values, indices = peaks.flatten(1).topk(min(MAX_DETECTIONS, peaks[0].numel()))
        labels = indices // (rows * columns)
        cells = indices % (rows * columns)
        geometry = raw[:, self.num_classes :].flatten(2)
        geometry = geometry.gather(2, cells[:, None].expand(-1, 4, -1)).transpose(1, 2)
        centers = torch.stack([cells % columns, cells // columns], -1) + geometry[..., 2:]
        half = geometry[..., :2] / 2
        boxes = torch.cat([centers - half, centers + half], -1) * STRIDE
        predictions = []
        for image in range(len(raw)):
            predictions.append(
                {"boxes": boxes[image], "labels": labels[image], "scores": values[image]}
            )
        return predictions


def _block(channels: int, width: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
