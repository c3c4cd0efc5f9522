"""Which pixels count for a classifier: gradients with respect to its input."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from hookline.engine import HOOKS
from hookline.errors import suggest
from hookline.visual.attribution import METHODS, saliency
from hookline.visual.explain_hook import ExplainHook


@HOOKS.register()
@dataclass
class SaliencyHook(ExplainHook):
    """Draw how much each pixel of the inputs counts for the predicted classes (by captum), by each of `methods`.

    They are `saliency` (the gradient) and `integrated_gradients`. Every `interval` training iterations, and of the first
    batch of a validation as often. The extra passes leave weights, gradients, modes and random numbers alone. Needs the
    extra `captum`.
    """

    methods: tuple[str, ...] = METHODS

    def __post_init__(self) -> None:
        super().__post_init__()
        for method in self.methods:
            if method not in METHODS:
                raise ValueError(f"SaliencyHook: unknown method {method!r}{suggest(method, METHODS)}")

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        return {method.replace("_", " "): saliency(model, inputs, classes, method) for method in self.methods}
