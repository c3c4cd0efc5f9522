"""When a classifier's predictions are explained, and how that becomes a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from hookline.engine import BaseRunner, state
from hookline.visual.attribution import predicted, require_captum
from hookline.visual.classification import read_labels
from hookline.visual.explanation import Explanation, explanation_picture
from hookline.visual.passes import undisturbed
from hookline.visual.picture_hook import ImageHook, Pictures, at_least
from hookline.visual.samples import as_array, class_names_of, input_of, take_samples

EXPECTED = (ValueError, TypeError, RuntimeError, AssertionError)  # of a model that is not of a kind that can be explained


@dataclass
class ExplainHook(ImageHook):
    """Explains every `interval` training iterations, and the first batch of a validation as often, the first time in any case."""

    interval: int = 500
    max_samples: int = 8
    mean: list[float] | None = None
    std: list[float] | None = None
    validated: int = state(-1)  # the iteration whose validation was drawn last

    def __post_init__(self) -> None:
        at_least(self, interval=1, max_samples=1)
        self._failed = False

    def before_run(self, runner: BaseRunner) -> None:
        require_captum(type(self).__name__)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.interval):
            self._draw(runner, "train")

    def after_val_iter(self, runner: BaseRunner) -> None:
        if runner.batch_idx == 0 and (self.validated < 0 or runner.iter - self.validated >= self.interval):
            self.validated = runner.iter
            self._draw(runner, "val")

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        """Heat maps [N, height, width] by what they are called."""
        raise NotImplementedError

    def _draw(self, runner: BaseRunner, mode: str) -> None:
        if self._failed or not self.has_room(runner):
            return
        try:
            samples, explanation = take_samples(runner, self.max_samples), self._attribute(runner)
        except Exception as error:  # whatever a model says that was called in a way it does not know: no picture ends a run
            self._failed = True
            unexpected = None if isinstance(error, EXPECTED) else error
            runner.logger.warning("%s: cannot explain this model, and does not try again: %s", self.name, error, exc_info=unexpected)
            return
        done, names = int(mode == "train"), class_names_of(runner, mode)
        title = f"{'training' if done else 'validation'}, step {runner.iter + done}"

        def compose() -> Pictures:
            images = self.to_rgb(samples.images(), runner.logger)
            return [(mode, explanation_picture(images, explanation, _truth(samples.targets), names, title))]

        self.paint(runner, compose, done)

    def _attribute(self, runner: BaseRunner) -> Explanation:
        inputs = input_of(runner.batch)
        if not isinstance(inputs, Tensor) or inputs.ndim != 4 or not inputs.is_floating_point():
            got = list(inputs.shape) if isinstance(inputs, Tensor) else type(inputs).__name__
            raise ValueError(f"expected images [N, C, H, W], got {got}")
        inputs = inputs[: self.max_samples].detach().clone()
        with undisturbed(runner.model) as model:
            classes, confidences = predicted(model, inputs)
            maps = self.explain(model, inputs.requires_grad_(), classes)
        return Explanation({name: as_array(each) for name, each in maps.items()}, classes.tolist(), confidences.tolist())


def _truth(targets: Any) -> list[int] | None:
    return read_labels(targets) if isinstance(targets, np.ndarray) else None
