from __future__ import annotations

import pytest
import torch

from hookline.models import MODELS


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 5, 7)])
def test_it_fits_small_images_of_any_size(shape):
    model = MODELS.build(
        {"type": "resnet", "in_channels": shape[0], "num_classes": 5, "width": 4, "blocks": 1}
    )
    assert model(torch.rand(2, *shape)).shape == (2, 5)


def test_three_blocks_of_sixteen_channels_are_resnet_20():
    model = MODELS.build({"type": "resnet", "blocks": 3})
    layers = [
        m
        for m in model.modules()
        if isinstance(m, torch.nn.Linear)
        or (isinstance(m, torch.nn.Conv2d) and m.kernel_size == (3, 3))
    ]
    assert len(layers) == 20
    assert 270_000 < sum(p.numel() for p in model.parameters()) < 280_000
