"""A residual network for small images."""

from __future__ import annotations

from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("resnet")
class ResNet(nn.Module):
    """Three stages of residual blocks, as for CIFAR; 3 blocks and a width of 16 are ResNet-20.

    Args:
        in_channels: The channels of an image; those of the dataset in a config, else 3.
        num_classes: The number of classes; that of the dataset in a config, else 10.
        width: The channels of the first stage; the next ones have two and four times as many.
        blocks: The residual blocks of each stage.
    """

    def __init__(
        self,
        in_channels: int | None = None,
        num_classes: int | None = None,
        width: int = 16,
        blocks: int = 2,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3 if in_channels is None else in_channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.stages = nn.Sequential(
            _stage(width, width, blocks, stride=1),
            _stage(width, 2 * width, blocks, stride=2),
            _stage(2 * width, 4 * width, blocks, stride=2),
        )
        self.head = nn.Linear(4 * width, 10 if num_classes is None else num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return scores [N, num_classes]."""
        pooled = self.stages(self.stem(images)).mean(dim=(2, 3))
        scores: Tensor = self.head(pooled)
        return scores


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut around them: a 1x1 convolution if the shape changes."""

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
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width)
            )
        self.activation = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.activation(self.convolutions(inputs) + self.shortcut(inputs))
        return outputs


def _stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    layers = [ResidualBlock(channels, width, stride)]
    for _ in range(blocks - 1):
        layers.append(ResidualBlock(width, width, 1))
    return nn.Sequential(*layers)
