"""Saliency maps: their values and pictures of them."""

from __future__ import annotations

import pytest
import torch

from hookline.errors import ConfigError
from hookline.hooks import EvalHook, SaliencyHook
from hookline.visual.attribution import saliency
from tests.helpers import make_runner
from tests.visual.picture_parts import Records, conv_model, images


def test_saliency_is_the_gradient_of_the_class_with_respect_to_the_input():
    model = conv_model().eval()
    inputs, classes = images()[0]
    result = saliency(model, inputs.clone().requires_grad_(), classes, "saliency")
    inputs = inputs.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(inputs)[torch.arange(5), classes].sum(), inputs)
    torch.testing.assert_close(result, gradient.abs().amax(1))


def test_integrated_gradients_of_a_linear_model_are_its_weights_times_the_input():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    inputs, classes = images()[0]
    result = saliency(model, inputs.clone().requires_grad_(), classes, "integrated_gradients")
    expected = (model[1].weight[classes].detach() * inputs.flatten(1)).abs().reshape(5, 8, 8)
    torch.testing.assert_close(result, expected)


def test_both_methods_are_drawn_for_training_and_validation(tmp_path):
    records = Records()
    hooks = SaliencyHook(interval=4, max_samples=2), EvalHook(interval=1), records
    make_runner(
        tmp_path,
        *hooks,
        model=conv_model(),
        train_loader=images(),
        val_loader=images(1),
        max_iters=4,
    ).train()
    assert records.names() == [("SaliencyHook/train", 4), ("SaliencyHook/val", 4)]


def test_only_the_given_methods_are_computed():
    inputs, classes = images()[0]
    maps = SaliencyHook(methods=["saliency"]).explain(
        conv_model(), inputs.requires_grad_(), classes
    )
    assert list(maps) == ["saliency"]
    assert maps["saliency"].shape == (5, 8, 8)


def test_an_unknown_method_is_rejected_with_the_nearest():
    with pytest.raises(ConfigError) as caught:
        SaliencyHook(methods=["salience"])
    assert (caught.value.component, caught.value.parameter) == ("SaliencyHook", "methods")
    assert caught.value.value == "salience"
    assert caught.value.suggestion.nearest == "saliency"
