"""FeatureMapHook: outputs of layers as heat maps."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookline.engine import HOOKS, BaseRunner
from hookline.errors import require_at_least
from hookline.hooks.bases.layers import select_layers
from hookline.hooks.bases.picture import ImageHook, NamedCanvases
from hookline.module_names import named_modules
from hookline.visual.heat_maps import as_maps, draw_feature_maps, name_maps
from hookline.visual.samples import take_image

CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
DEFAULT_LAYER_COUNT = 3


@HOOKS.register()
@dataclass
class FeatureMapHook(ImageHook):
    """Draw the outputs of layers for one training sample, a heat map for each channel.

    If the input is an image, it is drawn beside the maps. Each map has its own scale. The hook
    reads the layers only in iterations that it draws. Weights, gradients and the random state do
    not change.

    Args:
        frequency: Number of iterations between two pictures.
        max_features: Largest number of channels to draw.
        sample_batch_idx: Index of the sample in the batch. In a shorter batch it is the last
            sample.
        layers: Names of the layers, with wildcards (`features.*`). None draws the last three
            convolutions.
        mean: Mean that the inputs were normalized with, for each channel. None estimates it.
        std: Standard deviation that the inputs were normalized with, for each channel. None
            estimates it.

    Example:
        ```yaml
        hooks:
          - {type: FeatureMapHook, frequency: 200, layers: ["features.*"], max_features: 16}
        ```
    """

    frequency: int = 100
    max_features: int = 16
    sample_batch_idx: int = 0
    layers: list[str] | None = None
    mean: list[float] | None = None
    std: list[float] | None = None

    def __post_init__(self) -> None:
        require_at_least(self, 1, "frequency", "max_features")
        require_at_least(self, 0, "sample_batch_idx")
        self._layers: dict[str, nn.Module] = {}
        self._handles: list[RemovableHandle] = []
        self._outputs: dict[str, np.ndarray] = {}

    def before_train(self, runner: BaseRunner) -> None:
        modules = named_modules(runner.model)
        if self.layers is not None:
            self._layers = select_layers(self, "layers", modules, self.layers)
            return
        convolutions = [name for name in modules if isinstance(modules[name], CONVOLUTIONS)]
        self._layers = {name: modules[name] for name in convolutions[-DEFAULT_LAYER_COUNT:]}
        if not convolutions:
            self.warn_once(runner, "the model has no convolutions to draw; set 'layers'")

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._layers and self.has_room(runner):
            for name, module in self._layers.items():
                keep = functools.partial(self._keep_output, name)
                self._handles.append(module.register_forward_hook(keep))

    def after_forward(self, runner: BaseRunner) -> None:
        was_due = bool(self._handles)
        self._remove_handles()
        outputs = self._outputs
        self._outputs = {}
        if outputs:
            image = take_image(runner.batch, self.sample_batch_idx)
            compose = functools.partial(self._compose, runner, outputs, image, runner.iter)
            self.paint(runner, compose, runner.iter)
        elif was_due:
            self.warn_once(
                runner,
                "no layer returned an output that can be drawn (forward hooks do not run inside a"
                " compiled model)",
            )

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.after_forward(runner)  # for driven loops, which may skip that site

    def cleanup(self, runner: BaseRunner) -> None:
        self._remove_handles()
        super().cleanup(runner)

    def _keep_output(self, name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        if isinstance(output, (tuple, list)) and output:
            output = output[0]
        if isinstance(output, torch.Tensor) and output.ndim >= 2 and output.numel():
            sample = output.detach()[min(self.sample_batch_idx, len(output) - 1)]
            # Copy now: the next layer may work in place.
            self._outputs[name] = sample.to("cpu", torch.float32, copy=True).numpy()

    def _compose(
        self,
        runner: BaseRunner,
        outputs: dict[str, np.ndarray],
        image: np.ndarray | None,
        step: int,
    ) -> NamedCanvases:
        pixels = self.optional_to_rgb(image, runner.logger)
        for name, sample in outputs.items():
            shape = " × ".join(map(str, sample.shape))
            title = f"{name} ({shape}), step {step}"
            if sample.ndim > 1 and len(sample) > self.max_features:
                title += f": the first {self.max_features} of {len(sample)}"
            maps = as_maps(sample, self.max_features)
            names = name_maps(sample, self.max_features)
            yield name, draw_feature_maps(maps, title, names, pixels)

    def _remove_handles(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
