"""Base classes of hooks that draw: in the background, of images, at an interval."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hookline.engine import BaseHook, BaseRunner, state
from hookline.errors import require_at_least
from hookline.visual.backends import render
from hookline.visual.canvas import Canvas
from hookline.visual.images import Scaling, find_scaling, to_rgb
from hookline.visual.painter import finish_painting, get_painter
from hookline.visual.publish import PicturePublisher, open_window

# Canvases with their names; a hook that draws only one picture names it "".
NamedCanvases = Iterable[tuple[str, Canvas]]

PHASES = {"train": "training", "val": "validation"}


class PictureHook(BaseHook):
    """Base of hooks that draw in the background.

    A subclass copies its data and calls `paint` with a function that composes the pictures.
    That function runs in the drawing thread. Ask `has_room` first: it saves the copies of pictures
    that would be dropped.
    """

    ranks = "main"
    backend: str = "pillow"
    save: bool = True
    show: bool = False
    out_dir: str | None = None

    _has_warned: bool = False

    def after_run(self, runner: BaseRunner) -> None:
        finish_painting(runner)  # here, and not in cleanup: all writers are still open

    def on_exception(self, runner: BaseRunner) -> None:
        is_urgent = isinstance(runner.exception, (SystemExit, KeyboardInterrupt))
        finish_painting(runner, discard=is_urgent)

    def cleanup(self, runner: BaseRunner) -> None:
        finish_painting(runner)

    def has_room(self, runner: BaseRunner) -> bool:
        """Return whether a picture can be queued; if not, count it as dropped."""
        return get_painter(runner).has_room(self.name)

    def paint(
        self, runner: BaseRunner, compose: Callable[[], NamedCanvases], step: int | None = None
    ) -> None:
        """Queue pictures to be drawn and published.

        Args:
            compose: Returns the pictures with their names.
            step: The step that the pictures show; the runner's iteration by default.
        """
        publisher = PicturePublisher(runner, self, self.out_dir, self.save, step)
        get_painter(runner).submit(self.name, functools.partial(self._draw, compose, publisher))

    def warn_once(self, runner: BaseRunner, message: str, error: Exception | None = None) -> None:
        """Log a warning, with the traceback of an error if there is one, the first time only."""
        if not self._has_warned:
            self._has_warned = True
            runner.logger.warning("%s: %s", self.name, message, exc_info=error)

    def _draw(self, compose: Callable[[], NamedCanvases], publisher: PicturePublisher) -> None:
        for name, canvas in compose():
            pixels = render(canvas, self.backend)
            publisher.publish(pixels, name)
            if self.show:
                open_window(pixels, f"{self.name} {name}".strip())


class ImageHook(PictureHook):
    """Base of hooks that draw the images that a model gets.

    `mean` and `std` are those of their normalization; without them the normalization is guessed.
    """

    mean: list[float] | None = None
    std: list[float] | None = None

    _scaling: Scaling | None = None

    def to_rgb(self, images: list[np.ndarray], logger: logging.Logger) -> list[np.ndarray]:
        """Convert images [H, W, C] to bytes [H, W, 3], all as the first ones of the run."""
        if self._scaling is None:
            self._scaling = find_scaling(images, self.mean, self.std)
            if self._scaling.guess:
                logger.info(
                    "%s: the inputs look normalized; assuming %s (else set 'mean' and 'std')",
                    self.name,
                    self._scaling.guess,
                )
        return [to_rgb(image, self._scaling) for image in images]

    def optional_to_rgb(
        self, image: np.ndarray | None, logger: logging.Logger
    ) -> np.ndarray | None:
        """Convert an image that may be missing."""
        if image is None:
            return None
        return self.to_rgb([image], logger)[0]


@dataclass
class BatchPictureHook(ImageHook):
    """Base of hooks that draw samples of training and validation batches.

    Draws every `interval` training iterations. Of a validation it draws the first batch: at the
    first validation, and then at the first one after each `interval` iterations.
    """

    interval: int = 500
    max_samples: int = 16
    mean: list[float] | None = None
    std: list[float] | None = None
    validation_drawn_at: int = state(-1)  # iteration of the last validation that was drawn

    def __post_init__(self) -> None:
        require_at_least(self, 1, "interval", "max_samples")

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.interval):
            self._paint_batch(runner, "train", runner.iter + 1)

    def after_val_iter(self, runner: BaseRunner) -> None:
        is_first = self.validation_drawn_at < 0
        is_due = is_first or runner.iter - self.validation_drawn_at >= self.interval
        if runner.batch_idx == 0 and is_due:
            self.validation_drawn_at = runner.iter
            self._paint_batch(runner, "val", runner.iter)

    def prepare(self, runner: BaseRunner, mode: str, title: str) -> Callable[[], Canvas] | None:
        """Copy data of the current batch and return a function that composes the picture.

        Return None if there is nothing to draw.

        Args:
            mode: `train` or `val`.
        """
        raise NotImplementedError

    def _paint_batch(self, runner: BaseRunner, mode: str, step: int) -> None:
        if not self.has_room(runner):
            return
        compose = self.prepare(runner, mode, f"{PHASES[mode]}, step {step}")
        if compose is not None:
            self.paint(runner, lambda: [(mode, compose())], step)
