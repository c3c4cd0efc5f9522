"""A small network for semantic segmentation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("segmenter")
class Segmenter(nn.Module):
    """A U-Net with three levels, for images whose sides are multiples of 8.

    Args:
        in_channels: The channels of an image; those of the dataset in a config, else 3.
        num_classes: The number of classes; that of the dataset in a config, else 2.
        width: The channels at full resolution; they double at each level.
    """

    def __init__(
        self, in_channels: int | None = None, num_classes: int | None = None, width: int = 8
    ) -> None:
        super().__init__()
        levels = [width, 2 * width, 4 * width]
        self.enter = _block(3 if in_channels is None else in_channels, width)
        self.down = nn.ModuleList()
        for size in levels:
            self.down.append(
                nn.Sequential(nn.MaxPool2d(2), _block(size, 2 * size), _block(2 * size, 2 * size))
            )
        self.up = nn.ModuleList()
        for size in reversed(levels):
            self.up.append(nn.ConvTranspose2d(2 * size, size, 2, 2))
        self.merge = nn.ModuleList()
        for size in reversed(levels):
            self.merge.append(_block(2 * size, size))
        self.head = nn.Conv2d(width, 2 if num_classes is None else num_classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Return scores [N, num_classes, H, W]."""
        levels = [self.enter(images)]
        for down in self.down:
            levels.append(down(levels[-1]))
        features = levels.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            features = merge(torch.cat([up(features), levels.pop()], 1))
        scores: Tensor = self.head(features)
        return scores


def _block(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
    )
