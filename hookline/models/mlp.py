"""A multi-layer perceptron."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from hookline.models import MODELS


@MODELS.register("mlp")
class MLP(nn.Module):
    """Fully connected layers over the flattened input.

    `input_shape` (one sample's) and `num_classes` are taken from the data set where a config leaves them out;
    `in_features` says the same as `input_shape`.
    """

    def __init__(
        self,
        in_features: int | None = None,
        hidden: Sequence[int] = (128, 64),
        num_classes: int | None = None,
        dropout: float = 0.0,
        input_shape: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        width = _features(in_features, input_shape)
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = size
        self.layers = nn.Sequential(*layers, nn.Linear(width, 10 if num_classes is None else num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)  # type: ignore[no-any-return]


def _features(in_features: int | None, input_shape: Sequence[int] | None) -> int:
    if in_features is not None:
        return in_features
    if input_shape is None:
        raise ValueError("mlp: how large is a sample? Give in_features (a number) or input_shape (such as [1, 8, 8])")
    return math.prod(input_shape)
