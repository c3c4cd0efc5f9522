"""Base class of hooks that draw targets and predictions of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hookline.engine import BaseRunner
from hookline.errors import parameter_error, suggest
from hookline.hooks.bases.picture import BatchPictureHook
from hookline.visual.backends import BACKENDS
from hookline.visual.canvas import Canvas
from hookline.visual.publish import has_display
from hookline.visual.samples import Samples, get_class_names, take_samples


@dataclass
class ResultBatch:
    """Samples of a batch to draw, with their inputs as images [H, W, 3] of bytes."""

    images: list[np.ndarray]
    samples: Samples
    class_names: Sequence[str]
    title: str


@dataclass
class ResultHook(BatchPictureHook):
    """Base of hooks that draw targets and predictions."""

    draw_gt: bool = True
    draw_pred: bool = True
    show: bool = False
    save: bool = True
    out_dir: str | None = None
    score_thr: float = 0.3
    backend: str = "matplotlib"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend not in BACKENDS:
            suggestion = suggest(self.backend, BACKENDS)
            raise parameter_error(self, "backend", "is unknown", suggestion=suggestion)
        if not self.draw_gt and not self.draw_pred:
            raise parameter_error(self, "draw_pred", "must be true if 'draw_gt' is false")

    def before_run(self, runner: BaseRunner) -> None:
        if self.show and not has_display():
            self.show = False
            runner.logger.warning(
                "%s: show is ignored: there is no display (neither DISPLAY nor WAYLAND_DISPLAY is"
                " set)",
                self.name,
            )

    def prepare(self, runner: BaseRunner, mode: str, title: str) -> Callable[[], Canvas]:
        samples = take_samples(runner, self.max_samples)
        class_names = self.get_class_names(runner, mode)

        def compose() -> Canvas:
            images = self.to_rgb(samples.images(), runner.logger)
            return self.draw(ResultBatch(images, samples, class_names, title))

        return compose

    def draw(self, batch: ResultBatch) -> Canvas:
        """Draw targets and predictions on the images; called in the drawing thread."""
        raise NotImplementedError

    def get_class_names(self, runner: BaseRunner, mode: str) -> Sequence[str]:
        """Return the names of the classes of `train` or `val`."""
        return get_class_names(runner, mode)

    def columns(self) -> list[tuple[str, str]]:
        """Return the fields of the samples that are drawn side by side, with their captions."""
        columns = []
        if self.draw_gt:
            columns.append(("targets", "truth"))
        if self.draw_pred:
            columns.append(("predictions", "predicted"))
        return columns
