"""A multi-layer perceptron."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor, nn

from hookline.errors import ConfigError, Suggestion
from hookline.models import MODELS


@MODELS.register("mlp")
class MLP(nn.Module):
    """Fully connected layers over the flattened input.

    Args:
        in_features: The size of a flattened input.
        hidden: The sizes of the hidden layers.
        num_classes: The number of classes; that of the dataset in a config, else 10.
        dropout: The dropout rate after each hidden layer.
        input_shape: The shape of an input, in place of `in_features`; that of the dataset in a
            config.
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
        width = _input_size(in_features, input_shape)
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = size
        layers.append(nn.Linear(width, 10 if num_classes is None else num_classes))
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return scores [N, num_classes]."""
        scores: Tensor = self.layers(inputs)
        return scores


def _input_size(in_features: int | None, input_shape: Sequence[int] | None) -> int:
    if in_features is not None:
        return in_features
    if input_shape is None:
        raise ConfigError(
            "the size of a sample is unknown",
            component="MLP",
            parameter="in_features",
            suggestion=Suggestion(advice="set in_features (64) or input_shape ([1, 8, 8])"),
        )
    return math.prod(input_shape)
