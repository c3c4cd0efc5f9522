"""A small network that gives each pixel a class."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("segmenter")
class Segmenter(nn.Module):
    """A U-Net of three steps down and up; scores [N, num_classes, H, W] for images whose sides are multiples of 8."""

    def __init__(self, in_channels: int | None = None, num_classes: int | None = None, width: int = 8) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.enter = _block(3 if in_channels is None else in_channels, width)
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), _block(a, b), _block(b, b)) for a, b in itertools.pairwise(widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(list(itertools.pairwise(widths))))
        self.merge = nn.ModuleList(_block(2 * a, a) for a in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2 if num_classes is None else num_classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        seen = [self.enter(images)]
        for down in self.down:
            seen.append(down(seen[-1]))
        result = seen.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            result = merge(torch.cat([up(result), seen.pop()], 1))
        return self.head(result)  # type: ignore[no-any-return]


def _block(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
