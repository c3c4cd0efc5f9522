"""A small network that finds objects by their centres."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hookline.models import MODELS

STRIDE = 4
MOST = 16  # objects found in one image, at most


@MODELS.register("detector")
class Detector(nn.Module):
    """Centres on a grid of a quarter of the image's size, with a class, a size and an offset each ("Objects as Points").

    Batches are `(images, {"boxes": [N, M, 4], "labels": [N, M]})`, with boxes as left, top, right, bottom and the label -1 for
    none; predictions are for each image a dict with `boxes`, `labels` and `scores`.
    """

    def __init__(self, in_channels: int | None = None, num_classes: int | None = None, width: int = 32) -> None:
        super().__init__()
        self.num_classes = 1 if num_classes is None else num_classes
        self.features = nn.Sequential(
            *_block(3 if in_channels is None else in_channels, width, stride=2),
            *_block(width, 2 * width, stride=2),
            *_block(2 * width, 2 * width),
            *_block(2 * width, 2 * width),
        )
        self.head = nn.Conv2d(2 * width, self.num_classes + 4, 1)
        nn.init.constant_(self.head.bias[: self.num_classes], -4.0)  # type: ignore[index]  # most places hold nothing

    def forward(self, images: Tensor) -> Tensor:
        """[N, num_classes + 4, H / 4, W / 4]: scores of centres, then width, height and the centre's offset in cells."""
        return self.head(self.features(images))  # type: ignore[no-any-return]

    def train_step(self, batch: Any) -> dict[str, Any]:
        return self._step(batch)

    def val_step(self, batch: Any) -> dict[str, Any]:
        return self._step(batch)

    def _step(self, batch: Any) -> dict[str, Any]:
        images, targets = batch
        raw = self(images)
        return {"loss": self.loss(raw, targets), "predictions": self.decode(raw.detach()), "targets": targets}

    def loss(self, raw: Tensor, targets: dict[str, Tensor]) -> Tensor:
        """The focal loss of the centres plus the error of sizes and offsets at the true ones."""
        heat, image, x, y, wanted = self._targets(raw, targets)
        scores = raw[:, : self.num_classes].sigmoid().clamp(1e-4, 1 - 1e-4)
        centre = heat == 1
        hit = -((1 - scores) ** 2) * scores.log() * centre
        miss = -((1 - heat) ** 4) * scores**2 * (1 - scores).log() * ~centre
        count = max(len(image), 1)
        return (hit.sum() + miss.sum() + F.l1_loss(raw[image, self.num_classes :, y, x], wanted, reduction="sum") * 0.5) / count

    def decode(self, raw: Tensor) -> list[dict[str, Tensor]]:
        """Boxes at the peaks of the scores."""
        scores = raw[:, : self.num_classes].sigmoid()
        peaks = scores * (scores == F.max_pool2d(scores, 3, 1, 1))
        columns = raw.shape[3]
        values, places = peaks.flatten(1).topk(min(MOST, peaks[0].numel()))
        labels, cells = places // (raw.shape[2] * columns), places % (raw.shape[2] * columns)
        sizes = raw[:, self.num_classes :].flatten(2).gather(2, cells[:, None].expand(-1, 4, -1)).transpose(1, 2)
        centres = torch.stack([cells % columns, cells // columns], -1) + sizes[..., 2:]
        boxes = torch.cat([centres - sizes[..., :2] / 2, centres + sizes[..., :2] / 2], -1) * STRIDE
        return [{"boxes": b, "labels": k, "scores": s} for b, k, s in zip(boxes, labels, values, strict=True)]

    def _targets(self, raw: Tensor, targets: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """The heat that centres spread, and for each object its image, cell, and size with offset."""
        boxes, labels = targets["boxes"] / STRIDE, targets["labels"]
        image, place = (labels >= 0).nonzero(as_tuple=True)
        boxes, labels = boxes[image, place], labels[image, place]
        centres, sizes = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
        rows, columns = raw.shape[2:]
        x, y = centres[:, 0].long().clamp(0, columns - 1), centres[:, 1].long().clamp(0, rows - 1)
        grid_x, grid_y = torch.arange(columns, device=raw.device), torch.arange(rows, device=raw.device)
        spread = (sizes.min(1).values / 6).clamp_min(0.5)[:, None, None]
        distance = (grid_x[None, None] - x[:, None, None]) ** 2 + (grid_y[None, :, None] - y[:, None, None]) ** 2
        heat = raw.new_zeros(len(raw), self.num_classes, rows, columns)
        for number, bell in enumerate((-distance / (2 * spread**2)).exp()):
            heat[image[number], labels[number]] = torch.maximum(heat[image[number], labels[number]], bell)
        return heat, image, x, y, torch.cat([sizes, centres - torch.stack([x, y], 1)], 1)


def _block(channels: int, width: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
