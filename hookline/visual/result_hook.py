"""When and where results of a model are drawn; how is up to those who derive from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hookline.engine import BaseRunner, state
from hookline.visual.canvas import Picture
from hookline.visual.picture_hook import ImageHook, Pictures, at_least
from hookline.visual.publish import why_no_window
from hookline.visual.render import check_backend
from hookline.visual.samples import Samples, class_names_of, take_samples


@dataclass
class ResultHook(ImageHook):
    """Draws every `interval` training iterations, and the first batch of a validation as often, the first time in any case."""

    interval: int = 500
    draw_gt: bool = True
    draw_pred: bool = True
    show: bool = False
    save: bool = True
    out_dir: str | None = None
    max_samples: int = 16
    score_thr: float = 0.3
    backend: str = "matplotlib"
    mean: list[float] | None = None
    std: list[float] | None = None
    validated: int = state(-1)  # the iteration whose validation was drawn last

    def __post_init__(self) -> None:
        at_least(self, interval=1, max_samples=1)
        check_backend(type(self).__name__, self.backend)
        if not (self.draw_gt or self.draw_pred):
            raise ValueError(f"{type(self).__name__}: draw_gt and draw_pred are both off, so there is nothing to draw")

    def before_run(self, runner: BaseRunner) -> None:
        reason = why_no_window() if self.show else None
        if reason is not None:
            self.show = False
            runner.logger.warning("%s: show: no window can be opened: %s", self.name, reason)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.interval):
            self._draw(runner, "train")

    def after_val_iter(self, runner: BaseRunner) -> None:
        if runner.batch_idx == 0 and (self.validated < 0 or runner.iter - self.validated >= self.interval):
            self.validated = runner.iter
            self._draw(runner, "val")

    def picture(self, images: list[np.ndarray], samples: Samples, names: Sequence[str], title: str) -> Picture:
        """Images [H, W, 3] with what is to be seen on them; called in the background."""
        raise NotImplementedError

    def columns(self) -> list[tuple[str, str]]:
        """What stands side by side: the field of the samples, and its caption."""
        return [("targets", "truth")] * self.draw_gt + [("predictions", "predicted")] * self.draw_pred

    def _draw(self, runner: BaseRunner, mode: str) -> None:
        if self.has_room(runner):
            samples = take_samples(runner, self.max_samples)
            names = getattr(self, "class_names", None) or class_names_of(runner, mode)
            done = int(mode == "train")
            title = f"{'training' if done else 'validation'}, step {runner.iter + done}"

            def compose() -> Pictures:
                return [(mode, self.picture(self.to_rgb(samples.images(), runner.logger), samples, names, title))]

            self.paint(runner, compose, done)
