"""SaliencyHook: relevance of input pixels for the predictions of a classifier."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from hookline.engine import HOOKS
from hookline.errors import parameter_error, suggest
from hookline.hooks.bases.explain import ExplainHook
from hookline.visual.attribution import METHODS, saliency


@HOOKS.register()
@dataclass
class SaliencyHook(ExplainHook):
    """Draw how much each input pixel contributes to the predicted classes.

    The extra passes do not change weights, gradients, modes or the random state. The hook needs the
    extra `captum`.

    Args:
        interval: Number of training iterations between two pictures. The first batch of a
            validation is drawn at the same interval, and the first validation always is.
        max_samples: Largest number of samples to draw.
        mean: Mean that the inputs were normalized with, for each channel. None estimates it.
        std: Standard deviation that the inputs were normalized with, for each channel. None
            estimates it.
        methods: `saliency` (the gradient), `integrated_gradients`, or both.

    Attributes:
        validation_drawn_at: Iteration of the last validation that was drawn.

    Example:
        ```yaml
        hooks:
          - {type: SaliencyHook, interval: 200, max_samples: 4, methods: [saliency]}
        ```
    """

    methods: tuple[str, ...] = METHODS

    def __post_init__(self) -> None:
        super().__post_init__()
        for method in self.methods:
            if method not in METHODS:
                suggestion = suggest(method, METHODS)
                raise parameter_error(
                    self, "methods", "has an unknown method", value=method, suggestion=suggestion
                )

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        maps = {}
        for method in self.methods:
            maps[method.replace("_", " ")] = saliency(model, inputs, classes, method)
        return maps
