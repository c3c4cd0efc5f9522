"""What convolutions see, as heat maps."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookline.engine import HOOKS, BaseRunner
from hookline.visual.heat_maps import as_maps, feature_map_picture
from hookline.visual.picture_hook import PictureHook, Pictures, at_least, matching

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
DEFAULT_COUNT = 3  # how many of a model's convolutions are shown if no layers are named


@HOOKS.register()
@dataclass
class FeatureMapHook(PictureHook):
    """Draw what layers put out for one training sample, every `frequency` iterations.

    `layers` are names of modules, with wildcards (`features.*`); without them it is the last three convolutions. At most
    `max_features` channels are shown, of the sample `sample_batch_idx` of the batch (the last one of a shorter batch).
    The layers are listened to only in iterations that are due; weights, gradients and random numbers are left alone.
    """

    frequency: int = 100
    max_features: int = 16
    sample_batch_idx: int = 0
    layers: list[str] | None = None

    def __post_init__(self) -> None:
        at_least(self, frequency=1, max_features=1, sample_batch_idx=0)
        self._targets: dict[str, nn.Module] = {}
        self._handles: list[RemovableHandle] = []
        self._kept: dict[str, np.ndarray] = {}

    def before_train(self, runner: BaseRunner) -> None:
        modules = {name: module for name, module in runner.model.named_modules() if name}
        if self.layers is not None:
            self._targets = matching("FeatureMapHook", modules, self.layers)
            return
        convolutions = [(name, module) for name, module in modules.items() if isinstance(module, CONVOLUTIONS)]
        self._targets = dict(convolutions[-DEFAULT_COUNT:])
        if not convolutions:
            self.tell_once(runner, "the model has no convolutions, so there is nothing to draw; name other layers with 'layers'")

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._targets and self.has_room(runner):
            for name, module in self._targets.items():
                self._handles.append(module.register_forward_hook(functools.partial(self._keep, name)))

    def after_forward(self, runner: BaseRunner) -> None:
        listened = bool(self._handles)
        self._stop_listening()
        kept, self._kept = self._kept, {}
        if kept:
            self.paint(runner, functools.partial(self._compose, kept, runner.iter))
        elif listened:
            self.tell_once(runner, "no layer put out anything that can be drawn (layers inside of a compiled model cannot be listened to)")

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.after_forward(runner)  # in a loop of the user's own that has not said when the forward was over

    def cleanup(self, runner: BaseRunner) -> None:
        self._stop_listening()
        super().cleanup(runner)

    def _keep(self, name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        output = output[0] if isinstance(output, (tuple, list)) and output else output
        if isinstance(output, torch.Tensor) and output.ndim >= 2 and output.numel():
            sample = output.detach()[min(self.sample_batch_idx, len(output) - 1)]
            self._kept[name] = sample.to("cpu", torch.float32, copy=True).numpy()  # a copy: the next layer may work in place

    def _compose(self, kept: dict[str, np.ndarray], step: int) -> Pictures:
        for name, sample in kept.items():
            shape = " × ".join(map(str, sample.shape))
            yield name, feature_map_picture(as_maps(sample, self.max_features), f"{name}  ({shape}), step {step}")

    def _stop_listening(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
