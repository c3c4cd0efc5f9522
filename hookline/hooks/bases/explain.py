"""Base class of hooks that explain the predictions of a classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from hookline.engine import BaseRunner
from hookline.hooks.bases.picture import BatchPictureHook
from hookline.visual.attribution import predict_classes, require_captum
from hookline.visual.canvas import Canvas
from hookline.visual.classification import Prediction, read_labels
from hookline.visual.explanation import Explanation, draw_explanation
from hookline.visual.passes import undisturbed
from hookline.visual.samples import get_class_names, get_inputs, take_samples, to_array

# Errors of models that cannot be explained; others are logged with their traceback.
EXPECTED_ERRORS = (ValueError, TypeError, RuntimeError, AssertionError)


@dataclass
class ExplainHook(BatchPictureHook):
    """Base of hooks that draw heat maps of the relevance of inputs for predicted classes."""

    max_samples: int = 8

    def before_run(self, runner: BaseRunner) -> None:
        require_captum(type(self).__name__)

    def explain(self, model: nn.Module, inputs: Tensor, classes: Tensor) -> dict[str, Tensor]:
        """Return heat maps [N, H, W] by the name of the method."""
        raise NotImplementedError

    def prepare(self, runner: BaseRunner, mode: str, title: str) -> Callable[[], Canvas] | None:
        if self._has_warned:
            return None
        try:
            samples = take_samples(runner, self.max_samples)
            explanation = self._explain_batch(runner)
        except Exception as error:  # a picture must not end the run, whatever the model raises
            unexpected = None if isinstance(error, EXPECTED_ERRORS) else error
            message = f"cannot explain this model, and will not try again: {error}"
            self.warn_once(runner, message, unexpected)
            return None
        class_names = get_class_names(runner, mode)

        def compose() -> Canvas:
            images = self.to_rgb(samples.images(), runner.logger)
            truth = None
            if isinstance(samples.targets, np.ndarray):
                truth = read_labels(samples.targets)
            return draw_explanation(images, explanation, truth, class_names, title)

        return compose

    def _explain_batch(self, runner: BaseRunner) -> Explanation:
        inputs = get_inputs(runner.batch)
        if not isinstance(inputs, Tensor):
            raise ValueError(f"expected images [N, C, H, W], got {type(inputs).__name__}")
        if inputs.ndim != 4 or not inputs.is_floating_point():
            raise ValueError(f"expected images [N, C, H, W], got {list(inputs.shape)}")
        inputs = inputs[: self.max_samples].detach().clone()
        with undisturbed(runner.model) as model:
            classes, confidences = predict_classes(model, inputs)
            maps = self.explain(model, inputs.requires_grad_(), classes)
        predictions = []
        for label, confidence in zip(classes.tolist(), confidences.tolist(), strict=True):
            predictions.append(Prediction(label, confidence))
        return Explanation({name: to_array(heat) for name, heat in maps.items()}, predictions)
