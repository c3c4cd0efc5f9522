"""Attribution of a classifier's predictions to its inputs, computed by captum."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from hookline.errors import ConfigError

CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)
METHODS = ("saliency", "integrated_gradients")
INTEGRATION_STEPS = 32


def require_captum(component: str) -> None:
    """Raise ConfigError if captum is not installed."""
    if importlib.util.find_spec("captum") is None:
        message = "captum is not installed; run: pip install 'hookline[captum]'"
        raise ConfigError(message, component=component)


def grad_cam(model: nn.Module, layer: nn.Module, inputs: Tensor, classes: Tensor) -> Tensor:
    """Return Grad-CAM maps [N, H, W] of a layer.

    They are its channels weighted by the mean gradient of the class score, cut off below 0.
    """
    from captum.attr import LayerGradCam

    maps: Tensor = LayerGradCam(model, layer).attribute(
        inputs, target=classes, relu_attributions=True
    )
    return maps.detach().sum(1)


def saliency(model: nn.Module, inputs: Tensor, classes: Tensor, method: str) -> Tensor:
    """Return the relevance [N, H, W] of each pixel for the class score: its largest channel.

    Args:
        method: `saliency`, the absolute gradient, or `integrated_gradients`.
    """
    from captum.attr import IntegratedGradients, Saliency

    relevance: Tensor
    if method == "saliency":
        relevance = Saliency(model).attribute(inputs, target=classes)
    else:
        relevance = IntegratedGradients(model).attribute(
            inputs,
            target=classes,
            n_steps=INTEGRATION_STEPS,
            internal_batch_size=4 * len(inputs),
        )
    return relevance.detach().abs().amax(1)


def predict_classes(model: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the classes with the highest scores and their probabilities."""
    with torch.no_grad():
        scores = model(inputs)
    if not isinstance(scores, Tensor) or scores.ndim != 2:
        got = list(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(f"expected a classifier that returns scores [N, classes], got {got}")
    best = scores.float().softmax(1).max(1)
    return best.indices, best.values


def find_last_convolution(modules: Mapping[str, nn.Module]) -> str | None:
    """Return the name of the last convolution, None if there is none."""
    last = None
    for name, module in modules.items():
        if isinstance(module, CONVOLUTIONS):
            last = name
    return last
