"""AttentionMapHook: attention weights over the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from hookline.engine import HOOKS, BaseRunner
from hookline.errors import require_at_least
from hookline.hooks.bases.layers import select_layers
from hookline.hooks.bases.picture import ImageHook, NamedCanvases
from hookline.module_names import named_modules
from hookline.visual.attention import AttentionRecorder, attention_over_image
from hookline.visual.canvas import Canvas
from hookline.visual.colors import BLACK
from hookline.visual.grid import ColorScale, Tile, draw_grid
from hookline.visual.heat_maps import (
    describe_range,
    draw_feature_maps,
    make_input_tile,
    overlay,
)
from hookline.visual.images import enlarge_or_shrink, zoom_to
from hookline.visual.samples import take_image

TILE_SIZE = 128  # pixels
DEFAULT_LAYER_COUNT = 2


@HOOKS.register()
@dataclass
class AttentionMapHook(ImageHook):
    """Draw the attention of one training sample, a map for each head over the input image.

    The hook sees `nn.MultiheadAttention` and modules that call `scaled_dot_product_attention`. If
    the input is no image, or its patches form no grid, it draws the attention matrices. The weights
    are recomputed from the inputs of the layer, without dropout. Training is not affected.

    Args:
        frequency: Number of iterations between two pictures.
        layers: Names of the layers, with wildcards. None draws the last two layers with attention.
        sample_batch_idx: Index of the sample in the batch.
        max_heads: Largest number of heads to draw.
        mean: Mean that the inputs were normalized with, for each channel. None estimates it.
        std: Standard deviation that the inputs were normalized with, for each channel. None
            estimates it.

    Example:
        ```yaml
        hooks:
          - {type: AttentionMapHook, frequency: 200, layers: ["blocks.*"], max_heads: 4}
        ```
    """

    frequency: int = 100
    layers: list[str] | None = None
    sample_batch_idx: int = 0
    max_heads: int = 8
    mean: list[float] | None = None
    std: list[float] | None = None

    def __post_init__(self) -> None:
        require_at_least(self, 1, "frequency", "max_heads")
        require_at_least(self, 0, "sample_batch_idx")
        self._layers: dict[str, nn.Module] = {}
        self._recorder: AttentionRecorder | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._layers = named_modules(runner.model)
        if self.layers is not None:
            self._layers = select_layers(self, "layers", self._layers, self.layers)

    def before_train_iter(self, runner: BaseRunner) -> None:
        if not self._has_warned and self.has_room(runner):
            self._recorder = AttentionRecorder(self._layers, self.sample_batch_idx)
            self._recorder.start()

    def after_forward(self, runner: BaseRunner) -> None:
        if self._recorder is None:
            return
        recorder = self._recorder
        self._recorder = None
        recorder.stop()
        try:
            found = recorder.compute_weights(DEFAULT_LAYER_COUNT if self.layers is None else None)
        except Exception as error:  # a picture must not end the run, whatever the layer raises
            message = f"cannot compute the attention weights, and will not try again: {error}"
            self.warn_once(runner, message)
            return
        if not found:
            self.warn_once(runner, "the model has no attention that can be drawn")
            return
        weights = {name: each.numpy() for name, each in found.items()}
        image = take_image(runner.batch, self.sample_batch_idx)
        step = runner.iter

        def compose() -> NamedCanvases:
            pixels = self.optional_to_rgb(image, runner.logger)
            for name, each in weights.items():
                title = f"attention of {name}, step {step}"
                yield name, draw_attention(each[: self.max_heads], pixels, title)

        self.paint(runner, compose, step)

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.after_forward(runner)  # for driven loops, which may skip that site

    def cleanup(self, runner: BaseRunner) -> None:
        if self._recorder is not None:
            self._recorder.stop()
        super().cleanup(runner)


def draw_attention(weights: np.ndarray, image: np.ndarray | None, title: str) -> Canvas:
    """Draw weights [heads, queries, keys] over an image, or as matrices if they do not fit it."""
    names = [f"head {number}" for number in range(len(weights))]
    matrices_title = f"{title} (rows: queries, columns: keys)"
    if image is None:
        return draw_feature_maps(weights, matrices_title, names)
    tiles = []
    for name, head in zip(names, weights, strict=True):
        heat = attention_over_image(head, *image.shape[:2])
        if heat is None:
            return draw_feature_maps(weights, matrices_title, names, image)
        pixels = enlarge_or_shrink(overlay(image, heat), zoom_to(image, TILE_SIZE))
        tiles.append(Tile(pixels, [(name, BLACK), (describe_range(heat), BLACK)]))
    scale = ColorScale("attention, each head on its own scale", "lowest", "highest")
    return draw_grid(tiles, title, lead=make_input_tile(image, TILE_SIZE), scale=scale)
