"""What hooks that draw have in common."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from hookline.engine import BaseHook, BaseRunner
from hookline.errors import ConfigError, suggest
from hookline.visual.canvas import Picture
from hookline.visual.images import Scaling, find_scaling, to_rgb
from hookline.visual.painter import finish_painting, painter_of
from hookline.visual.publish import Place, open_window
from hookline.visual.render import render

Pictures = Iterable[tuple[str, Picture]]  # with their names, "" for a hook that has only one


class PictureHook(BaseHook):
    """Draws in the background: `paint` takes a function that composes pictures out of copies, and returns at once."""

    ranks = "main"
    backend: str = "pillow"
    save: bool = True
    show: bool = False
    out_dir: str | None = None

    _told: bool = False

    def after_run(self, runner: BaseRunner) -> None:
        finish_painting(runner)  # here, while all writers are still open

    def on_exception(self, runner: BaseRunner) -> None:
        in_a_hurry = isinstance(runner.exception, (SystemExit, KeyboardInterrupt))
        finish_painting(runner, discard=in_a_hurry)

    def cleanup(self, runner: BaseRunner) -> None:
        finish_painting(runner)

    def has_room(self, runner: BaseRunner) -> bool:
        """Whether it is worth copying anything; asked before `paint`."""
        return painter_of(runner).has_room(self.name)

    def paint(self, runner: BaseRunner, compose: Callable[[], Pictures], done: int = 0) -> None:
        """Have pictures drawn of this moment; `done` is 1 where the current iteration is over but not counted yet."""
        place = Place(runner, self, self.out_dir, self.save, done)

        def job() -> None:
            for name, picture in compose():
                pixels = render(picture, self.backend)
                place.publish(pixels, name)
                if self.show:
                    open_window(pixels, f"{self.name} {name}".strip())

        painter_of(runner).submit(self.name, job)

    def tell_once(self, runner: BaseRunner, message: str) -> None:
        if not self._told:
            self._told = True
            runner.logger.warning("%s: %s", self.name, message)


class ImageHook(PictureHook):
    """Draws a model's inputs, normalised as they were given or as it looks."""

    mean: list[float] | None = None
    std: list[float] | None = None

    _scaling: Scaling | None = None

    def to_rgb(self, images: list[np.ndarray], logger: logging.Logger) -> list[np.ndarray]:
        """Images [H, W, C] as bytes [H, W, 3]; the first ones decide how, so that all pictures of a run are alike."""
        if self._scaling is None:
            self._scaling = find_scaling(images, self.mean, self.std)
            if self._scaling.note:
                logger.info(
                    "%s: inputs look normalised and are drawn with %s, a guess; 'mean' and 'std' say it", self.name, self._scaling.note
                )
        return [to_rgb(image, self._scaling) for image in images]


def at_least(hook: BaseHook, **limits: float) -> None:
    """ValueError for a parameter that is below its limit."""
    for name, least in limits.items():
        if getattr(hook, name) < least:
            raise ValueError(f"{type(hook).__name__}: {name} must be at least {least}, got {getattr(hook, name)}")


def matching(who: str, known: dict[str, Any], patterns: Collection[str]) -> dict[str, Any]:
    """The modules whose names match any pattern, in the model's order; a pattern that matches none is a mistake."""
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise ConfigError(f"{who}: no layer is named {pattern!r}{suggest(pattern, filter(None, known))}")
    return {name: module for name, module in known.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}
