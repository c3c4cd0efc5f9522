"""CAMHook: class activation maps of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from hookline.engine import HOOKS, BaseRunner
from hookline.hooks.bases.explain import ExplainHook
from hookline.hooks.bases.layers import select_layers
from hookline.module_names import named_modules
from hookline.visual.attribution import find_last_convolution, grad_cam


@HOOKS.register()
@dataclass
class CAMHook(ExplainHook):
    """Draw class activation maps (Grad-CAM) of the predicted classes over the inputs.

    The extra passes do not change weights, gradients, modes or the random state. The hook needs the
    extra `captum`.

    Args:
        interval: Number of training iterations between two pictures. The first batch of a
            validation is drawn at the same interval, and the first validation always is.
        max_samples: Largest number of samples to draw.
        mean: Mean that the inputs were normalized with, for each channel. None estimates it.
        std: Standard deviation that the inputs were normalized with, for each channel. None
            estimates it.
        layer: Module whose output is used. With wildcards (`features.*`), it is the last match.
            None uses the last convolution.

    Attributes:
        validation_drawn_at: Iteration of the last validation that was drawn.

    Example:
        ```yaml
        hooks:
          - {type: CAMHook, interval: 200, max_samples: 4}
        ```
    """

    layer: str | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._find_layer(named_modules(runner.model))

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        modules = named_modules(model)
        name = self._find_layer(modules)
        if name is None:
            raise ValueError("the model has no convolution; set 'layer'")
        return {f"Grad-CAM of {name}": grad_cam(model, modules[name], inputs, classes)}

    def _find_layer(self, modules: Mapping[str, nn.Module]) -> str | None:
        if self.layer is None:
            return find_last_convolution(modules)
        if self.layer in modules:
            return self.layer
        return list(select_layers(self, "layer", modules, [self.layer]))[-1]
