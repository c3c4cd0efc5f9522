"""What a model predicts, drawn: classes, boxes and masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookline.engine import HOOKS
from hookline.errors import suggest
from hookline.visual.boxes import FORMATS, BoxStyle, box_tile, read_detections
from hookline.visual.canvas import Picture
from hookline.visual.classification import classification_picture, read_guesses, read_labels
from hookline.visual.colours import Colour, parse_colour
from hookline.visual.grid import grid
from hookline.visual.masks import MaskStyle, legend_of, mask_tile, read_masks
from hookline.visual.picture_hook import at_least
from hookline.visual.result_hook import ResultHook
from hookline.visual.samples import Samples


@HOOKS.register()
@dataclass
class VisualizationHook(ResultHook):
    """Draw images with their true and predicted classes: every `interval` training iterations, and of validations as often.

    Of a validation its first batch is drawn, the first time in any case. Pictures go to `out_dir` (`visualizations/<hook>`
    in the work directory if None) and into the events. `mean` and `std` are those that the inputs were normalised with;
    without them they are guessed. A prediction below `score_thr` has a question mark. The backend is `matplotlib`, or
    `pillow`, which is faster. `show` opens each picture in a window, where there is a display.
    """

    def picture(self, images: list[np.ndarray], samples: Samples, names: Sequence[str], title: str) -> Picture:
        truth = read_labels(samples.targets) if self.draw_gt else None
        guesses = read_guesses(samples.predictions) if self.draw_pred else None
        return classification_picture(images, truth, guesses, title, names, self.score_thr)


@HOOKS.register()
@dataclass
class DetVisualizationHook(VisualizationHook):
    """Draw boxes with labels and scores, truth and prediction side by side; otherwise like VisualizationHook.

    Targets and predictions are for each image a dict with `boxes` [N, 4], `labels` and perhaps `scores`, or one dict of
    stacked ones, padded with the label -1. `box_format` is xyxy, xywh or cxcywh; coordinates from 0 to 1 are fractions of the
    image. Boxes with a score below `score_thr` are left out. Colours are names, `#rrggbb` or `[r, g, b]`.
    """

    class_names: list[str] | None = None
    palette: list[Any] | None = None
    bbox_color: Any = None
    text_color: Any = None
    thickness: int = 2
    box_format: str = "xyxy"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, thickness=1)
        if self.box_format not in FORMATS:
            raise ValueError(f"{type(self).__name__}: unknown box_format {self.box_format!r}{suggest(self.box_format, FORMATS)}")
        box, text = (None if colour is None else parse_colour(colour) for colour in (self.bbox_color, self.text_color))
        self._look = (_palette(self.palette), box, text, self.thickness, self.score_thr)

    def picture(self, images: list[np.ndarray], samples: Samples, names: Sequence[str], title: str) -> Picture:
        style, sizes, tiles = BoxStyle(names, *self._look), [(image.shape[0], image.shape[1]) for image in images], []
        columns = [(read_detections(getattr(samples, what), sizes, self.box_format, what), caption) for what, caption in self.columns()]
        for index, image in enumerate(images):
            tiles += [box_tile(image, found[index], style, caption) for found, caption in columns]
        return grid(tiles, title, per_sample=len(columns))


@HOOKS.register()
@dataclass
class SegVisualizationHook(VisualizationHook):
    """Draw masks over images, truth and prediction side by side, with edges and a legend; otherwise like VisualizationHook.

    Masks are index maps [H, W], scores [classes, H, W] or stacks of binary masks. A class 0 called `background` is left clear.
    """

    class_names: list[str] | None = None
    palette: list[Any] | None = None
    opacity: float = 0.5
    show_edge: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.opacity <= 1:
            raise ValueError(f"{type(self).__name__}: opacity must be from 0 to 1, got {self.opacity}")
        self._colours = _palette(self.palette)

    def picture(self, images: list[np.ndarray], samples: Samples, names: Sequence[str], title: str) -> Picture:
        style, tiles = MaskStyle(names, self._colours, self.opacity, self.show_edge), []
        columns = [(read_masks(getattr(samples, what), len(images), what), caption) for what, caption in self.columns()]
        for index, image in enumerate(images):
            tiles += [mask_tile(image, masks[index], style, caption) for masks, caption in columns]
        every = [mask for masks, _ in columns for mask in masks]
        return grid(tiles, title, per_sample=len(columns), legend=legend_of(every, style))


def _palette(given: list[Any] | None) -> list[Colour]:
    return [parse_colour(colour) for colour in given or ()]
