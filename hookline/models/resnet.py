"""A residual network for small images."""

from __future__ import annotations

from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("resnet")
class ResNet(nn.Module):
    """Three stages of residual blocks as for CIFAR; `blocks: 3, width: 16` is ResNet-20.

    `in_channels` and `num_classes` are taken from the data set where a config leaves them out, and are else 3 and 10.
    """

    def __init__(self, in_channels: int | None = None, num_classes: int | None = None, width: int = 16, blocks: int = 2) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3 if in_channels is None else in_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.stages = nn.Sequential(
            _stage(width, width, blocks, stride=1),
            _stage(width, 2 * width, blocks, stride=2),
            _stage(2 * width, 4 * width, blocks, stride=2),
        )
        self.head = nn.Linear(4 * width, 10 if num_classes is None else num_classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(images)).mean(dim=(2, 3)))  # type: ignore[no-any-return]


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width))
        self.activation = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        return self.activation(self.convolutions(inputs) + self.shortcut(inputs))  # type: ignore[no-any-return]


def _stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    first = ResidualBlock(channels, width, stride)
    return nn.Sequential(first, *(ResidualBlock(width, width, 1) for _ in range(blocks - 1)))
