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
    is looked at, the last convolution if None. The extra passes leave weights, gradients, modes and random numbers alone.
    Needs the extra `captum`.
    """

    layer: str | None = None

    def before_train(self, runner: BaseRunner) -> None:
        if self.layer is not None:
            matching("CAMHook", dict(runner.model.named_modules()), [self.layer])

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        modules = dict(model.named_modules())
        name = self.layer or last_convolution(modules)
        if name is None:
            raise ValueError("the model has no convolution; name the 'layer' to look at")
        return {f"Grad-CAM of {name}": grad_cam(model, modules[name], inputs, classes)}
