"""Heat maps of gradients with respect to inputs."""

from __future__ import annotations

import pytest
import torch

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
    make_runner(tmp_path, *hooks, model=conv_model(), train_loader=images(), val_loader=images(1), max_iters=4).train()
    assert records.names() == [("SaliencyHook/train", 4), ("SaliencyHook/val", 4)]
    one = Records()
    make_runner(
        tmp_path, SaliencyHook(interval=4, max_samples=2, methods=["saliency"]), one, model=conv_model(), train_loader=images()
    ).train()
    assert (
        one.records[0].value.shape[1] < records.records[0].value.shape[1]
        or one.records[0].value.shape[0] < records.records[0].value.shape[0]
    )


def test_an_unknown_method_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="SaliencyHook: unknown method 'salience'; did you mean 'saliency'"):
        SaliencyHook(methods=["salience"])
