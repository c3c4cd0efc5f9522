"""What convolutions see, as heat maps."""

from __future__ import annotations

import fnmatch
import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import suggest

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
DEFAULT_COUNT = 3  # how many of a model's convolutions are shown if no layers are named


@HOOKS.register()
@dataclass
class FeatureMapHook(BaseHook):
    """Draw what layers put out for one training sample, every `frequency` iterations.

    `layers` are names of modules, with wildcards (`features.*`); without them it is the last three convolutions. At most
    `max_features` channels are shown, of the sample `sample_batch_idx` of the batch (the last one of a shorter batch).
    The layers are listened to only in iterations that are due; weights, gradients and random numbers are left alone.
    """

    frequency: int = 100
    max_features: int = 16
    sample_batch_idx: int = 0
    layers: list[str] | None = None

    ranks = "main"

    def __post_init__(self) -> None:
        for name, least in (("frequency", 1), ("max_features", 1), ("sample_batch_idx", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"FeatureMapHook: {name} must be at least {least}, got {getattr(self, name)}")
        self._targets: dict[str, nn.Module] = {}
        self._handles: list[RemovableHandle] = []
        self._maps: dict[str, torch.Tensor] = {}
        self._told = False

    def before_train(self, runner: BaseRunner) -> None:
        modules = {name: module for name, module in runner.model.named_modules() if name}
        if self.layers is not None:
            self._targets = _matching(modules, self.layers)
            return
        convolutions = [(name, module) for name, module in modules.items() if isinstance(module, CONVOLUTIONS)]
        self._targets = dict(convolutions[-DEFAULT_COUNT:])
        if not convolutions:
            self._tell_once(runner, "the model has no convolutions, so there is nothing to draw; name other layers with 'layers'")

    def before_train_iter(self, runner: BaseRunner) -> None:
        for name, module in self._targets.items():
            self._handles.append(module.register_forward_hook(functools.partial(self._keep, name)))

    def after_forward(self, runner: BaseRunner) -> None:
        self._stop_listening()
        maps, self._maps = self._maps, {}
        if maps:
            self._draw(runner, maps)
        elif self._targets:
            self._tell_once(runner, "no layer put out anything that can be drawn (layers inside of a compiled model cannot be listened to)")

    def cleanup(self, runner: BaseRunner) -> None:
        self._stop_listening()

    def _keep(self, name: str, module: nn.Module, inputs: Any, output: Any) -> None:
        output = output[0] if isinstance(output, (tuple, list)) and output else output
        if isinstance(output, torch.Tensor) and output.ndim >= 2 and output.numel():
            sample = output.detach()[min(self.sample_batch_idx, len(output) - 1)]
            self._maps[name] = sample.to("cpu", torch.float32, copy=True)  # a copy: the next layer may work in place

    def _draw(self, runner: BaseRunner, kept: dict[str, torch.Tensor]) -> None:
        from hookline.visual import as_maps, feature_map_figure, publish  # matplotlib takes half a second to import

        for name, sample in kept.items():
            maps = as_maps(sample, self.max_features)
            shape = " × ".join(map(str, sample.shape))
            publish(runner, self, feature_map_figure(maps, f"{name}  ({shape}), step {runner.iter}"), name)

    def _stop_listening(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _tell_once(self, runner: BaseRunner, message: str) -> None:
        if not self._told:
            self._told = True
            runner.logger.warning("%s: %s", self.name, message)


def _matching(modules: dict[str, nn.Module], patterns: list[str]) -> dict[str, nn.Module]:
    """The modules whose names match any pattern, in the model's order; a pattern that matches none is a mistake."""
    for pattern in patterns:
        if not fnmatch.filter(modules, pattern):
            raise ValueError(f"FeatureMapHook: no layer is named {pattern!r}{suggest(pattern, modules)}")
    return {name: module for name, module in modules.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
