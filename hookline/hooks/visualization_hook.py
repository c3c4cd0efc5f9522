"""Hooks that draw the predictions of a model: classes, boxes and masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import parameter_error, require_at_least, suggest
from hookline.hooks.bases.result import ResultBatch, ResultHook
from hookline.visual.boxes import FORMATS, BoxStyle, make_box_tile, read_detections
from hookline.visual.canvas import Canvas
from hookline.visual.classification import draw_classification, read_labels, read_predictions
from hookline.visual.colors import Color, parse_color
from hookline.visual.grid import draw_grid
from hookline.visual.masks import MaskStyle, find_class, make_legend, make_mask_tile, read_masks


@HOOKS.register()
@dataclass
class VisualizationHook(ResultHook):
    """Draw images with their true and predicted classes.

    Pictures are saved as files and recorded as events.

    Args:
        interval: Number of training iterations between two pictures. The first batch of a
            validation is drawn at the same interval, and the first validation always is.
        draw_gt: Draw the ground truth.
        draw_pred: Draw the predictions.
        show: Open each picture in a window, if there is a display.
        save: Save each picture as a file.
        out_dir: Directory of the files. None uses `visualizations/<hook>` in the work directory.
        max_samples: Largest number of samples to draw.
        score_thr: A prediction with a lower score gets a question mark.
        backend: Library that draws: `matplotlib`, or `pillow`, which is faster.
        mean: Mean that the inputs were normalized with, for each channel. None estimates it.
        std: Standard deviation that the inputs were normalized with, for each channel. None
            estimates it.

    Attributes:
        validation_drawn_at: Iteration of the last validation that was drawn.

    Example:
        ```yaml
        hooks:
          - {type: VisualizationHook, interval: 200, max_samples: 16, mean: [0.5], std: [0.5]}
        ```
    """

    def draw(self, batch: ResultBatch) -> Canvas:
        truth = None
        predictions = None
        if self.draw_gt:
            truth = read_labels(batch.samples.targets)
        if self.draw_pred:
            predictions = read_predictions(batch.samples.predictions)
        return draw_classification(
            batch.images, truth, predictions, batch.title, batch.class_names, self.score_thr
        )


@dataclass
class ClassColorsHook(VisualizationHook):
    """Base of hooks that draw each class in its own color.

    Args:
        class_names: Names of the classes. None uses the names that the data set has.
        palette: Colors of the classes. None uses a palette that color-blind readers can
            distinguish.
    """

    class_names: list[str] | None = None
    palette: list[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._palette = _parse_colors(self, "palette", self.palette)

    def get_class_names(self, runner: BaseRunner, mode: str) -> Sequence[str]:
        return self.class_names or super().get_class_names(runner, mode)


@HOOKS.register()
@dataclass
class DetVisualizationHook(ClassColorsHook):
    """Draw boxes with labels and scores, ground truth and prediction side by side.

    Targets and predictions are one dict for each image, with `boxes` [N, 4], `labels` and optional
    `scores`, or one dict of stacked tensors, padded with the label -1. Coordinates from 0 to 1 are
    fractions of the image. A color is a name, `#rrggbb` or `[r, g, b]`.

    Args:
        bbox_color: Color of all boxes. None uses the color of the class.
        text_color: Color of the text in labels. None chooses a readable one.
        thickness: Line width of the boxes, in pixels.
        box_format: `xyxy`, `xywh` or `cxcywh`.
        score_thr: Boxes with a lower score are not drawn.

    Example:
        ```yaml
        hooks:
          - type: DetVisualizationHook
            interval: 200
            score_thr: 0.5
            class_names: [cat, dog]
            box_format: xyxy
        ```
    """

    bbox_color: Any = None
    text_color: Any = None
    thickness: int = 2
    box_format: str = "xyxy"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self, 1, "thickness")
        if self.box_format not in FORMATS:
            suggestion = suggest(self.box_format, FORMATS)
            raise parameter_error(self, "box_format", "is unknown", suggestion=suggestion)
        self._box_color = _parse_optional_color(self, "bbox_color")
        self._text_color = _parse_optional_color(self, "text_color")

    def draw(self, batch: ResultBatch) -> Canvas:
        style = BoxStyle(
            batch.class_names,
            self._palette,
            self._box_color,
            self._text_color,
            self.thickness,
            self.score_thr,
        )
        sizes = [(image.shape[0], image.shape[1]) for image in batch.images]
        columns = []
        for field, caption in self.columns():
            value = getattr(batch.samples, field)
            columns.append((read_detections(value, sizes, self.box_format, field), caption))
        tiles = []
        for index, image in enumerate(batch.images):
            for detections, caption in columns:
                tiles.append(make_box_tile(image, detections[index], style, caption))
        return draw_grid(tiles, batch.title, tiles_per_sample=len(columns))


@HOOKS.register()
@dataclass
class SegVisualizationHook(ClassColorsHook):
    """Draw masks over images, ground truth and prediction side by side, with a legend.

    Masks are index maps [H, W], scores [classes, H, W] or stacks of binary masks.

    Args:
        opacity: Opacity of the masks, from 0 to 1.
        show_edge: Draw the edges of the masks.
        background: Class that stays transparent, by its number or name. None means the classes
            with the name `background` or `背景`.
        score_thr: Pixels whose predicted class has a lower probability stay transparent.

    Example:
        ```yaml
        hooks:
          - type: SegVisualizationHook
            interval: 200
            opacity: 0.5
            class_names: [background, road, car]
        ```
    """

    opacity: float = 0.5
    show_edge: bool = True
    background: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.opacity <= 1:
            raise parameter_error(self, "opacity", "must be from 0 to 1")

    def before_run(self, runner: BaseRunner) -> None:
        super().before_run(runner)
        names = self.get_class_names(runner, "train")
        if isinstance(self.background, str) and names and self.background not in names:
            suggestion = suggest(self.background, names)
            raise parameter_error(self, "background", "is not a class", suggestion=suggestion)

    def draw(self, batch: ResultBatch) -> Canvas:
        background = find_class(self.background, batch.class_names)
        style = MaskStyle(
            batch.class_names, self._palette, self.opacity, self.show_edge, background
        )
        columns = []
        all_masks = []
        for field, caption in self.columns():
            score_thr = self.score_thr if field == "predictions" else 0.0
            value = getattr(batch.samples, field)
            masks = read_masks(value, len(batch.images), field, score_thr)
            columns.append((masks, caption))
            all_masks.extend(masks)
        tiles = []
        for index, image in enumerate(batch.images):
            for masks, caption in columns:
                tiles.append(make_mask_tile(image, masks[index], style, caption))
        legend = make_legend(all_masks, style)
        return draw_grid(tiles, batch.title, tiles_per_sample=len(columns), legend=legend)


def _parse_optional_color(hook: BaseHook, parameter: str) -> Color | None:
    value = getattr(hook, parameter)
    if value is None:
        return None
    return _parse_colors(hook, parameter, [value])[0]


def _parse_colors(hook: BaseHook, parameter: str, values: list[Any] | None) -> list[Color]:
    colors = []
    for value in values or ():
        try:
            colors.append(parse_color(value))
        except ValueError as error:
            raise parameter_error(hook, parameter, str(error), value=value) from None
    return colors
