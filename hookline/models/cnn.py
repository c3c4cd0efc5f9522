"""A small convolutional network."""

from __future__ import annotations

from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("cnn")
class CNN(nn.Module):
    """Three convolutions, global average pooling, one linear layer; for images of any size from 4x4 on.

    `in_channels` and `num_classes` are taken from the data set where a config leaves them out, and are else 1 and 10.
    """

    def __init__(self, in_channels: int | None = None, num_classes: int | None = None, width: int = 32, dropout: float = 0.0) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_block(1 if in_channels is None else in_channels, width),
            nn.MaxPool2d(2),
            *_block(width, 2 * width),
            nn.MaxPool2d(2),
            *_block(2 * width, 4 * width),
        )
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(4 * width, 10 if num_classes is None else num_classes)

    def forward(self, images: Tensor) -> Tensor:
        # The mean, because the gradient of adaptive pooling is not deterministic on a GPU.
        pooled = self.features(images).mean(dim=(2, 3))
        return self.head(self.dropout(pooled))  # type: ignore[no-any-return]


def _block(channels: int, width: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
