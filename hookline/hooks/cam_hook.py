"""Where a classifier looks: class activation maps."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from hookline.engine import HOOKS, BaseRunner
from hookline.visual.attribution import grad_cam, last_convolution
from hookline.visual.explain_hook import ExplainHook
from hookline.visual.picture_hook import matching


@HOOKS.register()
@dataclass
class CAMHook(ExplainHook):
    """Draw class activation maps (Grad-CAM, by captum) of the predicted classes over the inputs.

    Every `interval` training iterations, and of the first batch of a validation as often. `layer` is the module whose output
    is looked at, the last convolution if None, and the last one that matches if it has wildcards (`features.*`). The extra
    passes leave weights, gradients, modes and random numbers alone. Needs the extra `captum`.
    """

    layer: str | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._name(dict(runner.model.named_modules()))

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        modules = dict(model.named_modules())
        name = self._name(modules)
        if name is None:
            raise ValueError("the model has no convolution; name the 'layer' to look at")
        return {f"Grad-CAM of {name}": grad_cam(model, modules[name], inputs, classes)}

    def _name(self, modules: dict[str, nn.Module]) -> str | None:
        if self.layer is None or self.layer in modules:
            return self.layer or last_convolution(modules)
        return list(matching("CAMHook", modules, [self.layer]))[-1]
