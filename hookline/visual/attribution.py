"""What in its input a classifier looks at; captum computes it."""

from __future__ import annotations

import importlib.util
from typing import Any

import torch
from torch import Tensor, nn

from hookline.errors import ConfigError

CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)
METHODS = ("saliency", "integrated_gradients")
STEPS = 32  # of the integral in integrated gradients


def require_captum(who: str) -> None:
    if importlib.util.find_spec("captum") is None:
        raise ConfigError(f"{who} needs captum: pip install 'hookline[captum]'")


def grad_cam(model: nn.Module, layer: nn.Module, inputs: Tensor, classes: Tensor) -> Tensor:
    """Grad-CAM [N, height, width] of a layer: its channels weighted by the mean gradient of the class's score, what is positive of it."""
    from captum.attr import LayerGradCam

    maps: Tensor = LayerGradCam(model, layer).attribute(inputs, target=classes, relu_attributions=True)
    return maps.detach().sum(1)


def saliency(model: nn.Module, inputs: Tensor, classes: Tensor, method: str) -> Tensor:
    """How much each pixel matters to the class's score, [N, height, width]: the largest of its channels."""
    from captum.attr import IntegratedGradients, Saliency

    result: Tensor
    if method == "saliency":
        result = Saliency(model).attribute(inputs, target=classes)
    else:
        result = IntegratedGradients(model).attribute(inputs, target=classes, n_steps=STEPS, internal_batch_size=4 * len(inputs)).abs()
    return result.detach().amax(1)


def predicted(model: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The classes with the highest scores, and the probabilities."""
    with torch.no_grad():
        scores = model(inputs)
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        got = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(f"expected a classifier that gives scores [N, classes], got {got}")
    best = scores.float().softmax(1).max(1)
    return best.indices, best.values


def last_convolution(modules: dict[str, Any]) -> str | None:
    return next((name for name, module in reversed(modules.items()) if isinstance(module, CONVOLUTIONS)), None)
