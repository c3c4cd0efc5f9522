from __future__ import annotations

import pytest
import torch

from hookline.models import MODELS


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32)])
def test_it_fits_the_images_of_digits_mnist_and_cifar(shape):
    model = MODELS.build({"type": "cnn", "in_channels": shape[0], "num_classes": 7, "width": 4})
    assert model(torch.rand(2, *shape)).shape == (2, 7)


def test_the_defaults_are_one_channel_and_ten_classes():
    assert MODELS.build("cnn")(torch.rand(2, 1, 8, 8)).shape == (2, 10)


def test_dropout_is_there_in_training_alone():
    model = MODELS.build({"type": "cnn", "width": 4, "dropout": 0.5})
    images = torch.rand(2, 1, 8, 8)
    assert not torch.equal(model(images), model(images))
    model.eval()
    assert torch.equal(model(images), model(images))
