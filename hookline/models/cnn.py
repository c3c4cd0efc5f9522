"""A small convolutional network for classification."""

from __future__ import annotations

from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("cnn")
class CNN(nn.Module):
    """Three convolutions, global average pooling and a linear layer, for images of 4x4 or larger.

    Args:
        in_channels: The channels of an image; those of the dataset in a config, else 1.
        num_classes: The number of classes; that of the dataset in a config, else 10.
        width: The channels of the first convolution; the next ones have two and four times as many.
        dropout: The dropout rate before the linear layer.
    """

    def __init__(
        self,
        in_channels: int | None = None,
        num_classes: int | None = None,
        width: int = 32,
        dropout: float = 0.0,
    ) -> None:
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
        """Return scores [N, num_classes]."""
        # The mean, because the gradient of adaptive pooling is not deterministic on a GPU.
        pooled = self.features(images).mean(dim=(2, 3))
        scores: Tensor = self.head(self.dropout(pooled))
        return scores


def _block(channels: int, width: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
