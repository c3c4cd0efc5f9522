"""What attention attends to, over the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from hookline.engine import HOOKS, BaseRunner
from hookline.visual.attention import Listener, over_image
from hookline.visual.canvas import Picture
from hookline.visual.colours import BLACK
from hookline.visual.grid import Tile, grid
from hookline.visual.heat_maps import feature_map_picture, overlay
from hookline.visual.images import zoom_for, zoomed
from hookline.visual.picture_hook import ImageHook, Pictures, at_least, matching
from hookline.visual.samples import Samples, take_samples

TILE = 128
DEFAULT_COUNT = 2  # the last layers with attention, if none are named


@HOOKS.register()
@dataclass
class AttentionMapHook(ImageHook):
    """Draw the attention of one training sample, a map for each head over the input image, every `frequency` iterations.

    Seen are `nn.MultiheadAttention` and modules that call `scaled_dot_product_attention`; `layers` names them, with wildcards,
    and without it the last two are drawn. Where the input is no image, or its patches form no grid, the matrices themselves
    are drawn. Weights are computed again from what the layer was given, without dropout; training does not notice.
    """

    frequency: int = 100
    layers: list[str] | None = None
    sample_batch_idx: int = 0
    max_heads: int = 8
    mean: list[float] | None = None
    std: list[float] | None = None

    def __post_init__(self) -> None:
        at_least(self, frequency=1, sample_batch_idx=0, max_heads=1)
        self._targets: dict[str, nn.Module] = {}
        self._listener: Listener | None = None

    def before_train(self, runner: BaseRunner) -> None:
        modules: dict[str, Any] = {name: module for name, module in runner.model.named_modules() if name}
        self._targets = modules if self.layers is None else matching("AttentionMapHook", modules, self.layers)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if not self._told and self.has_room(runner):
            self._listener = Listener(self._targets, self.sample_batch_idx)
            self._listener.start()

    def after_forward(self, runner: BaseRunner) -> None:
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        listener.stop()
        try:
            found = listener.weights(last=DEFAULT_COUNT if self.layers is None else 0)
            samples, step = take_samples(runner, self.sample_batch_idx + 1), runner.iter
        except Exception as error:  # attention of a kind that is not known here: no picture ends a run
            self.tell_once(runner, f"cannot compute the attention again, and does not try any more: {error}")
            return
        if not found:
            self.tell_once(runner, "no attention was seen in the model, so there is nothing to draw")
            return
        weights = {name: each.numpy() for name, each in found.items()}

        def compose() -> Pictures:
            image = self._image(samples, runner)
            for name, each in weights.items():
                yield name, attention_picture(each[: self.max_heads], image, f"attention of {name}, step {step}")

        self.paint(runner, compose)

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.after_forward(runner)  # in a loop of the user's own that has not said when the forward was over

    def cleanup(self, runner: BaseRunner) -> None:
        if self._listener is not None:
            self._listener.stop()
        super().cleanup(runner)

    def _image(self, samples: Samples, runner: BaseRunner) -> np.ndarray | None:
        try:
            images = samples.images()
        except ValueError:
            return None  # not an image: the matrices are drawn instead
        return self.to_rgb(images, runner.logger)[-1]


def attention_picture(weights: np.ndarray, image: np.ndarray | None, title: str) -> Picture:
    """For each head of the weights [heads, queries, keys] a map over the image, beside it, or the matrices if that cannot be."""
    if image is not None:
        large = zoomed(image, zoom_for(image, TILE))
        maps = [over_image(head, *image.shape[:2]) for head in weights]
        if all(each is not None for each in maps):
            tiles = [Tile(overlay(large, each), [(f"head {number}", BLACK)]) for number, each in enumerate(maps, 1) if each is not None]
            return grid([Tile(large, [("input", BLACK)]), *tiles], title, scale="attention, little to much")
    return feature_map_picture(weights, f"{title} (rows: queries, columns: keys)")
