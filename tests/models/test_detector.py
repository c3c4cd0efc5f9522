"""The detector: targets, loss and decoding agree with each other."""

from __future__ import annotations

import pytest
import torch

from hookline import Runner
from hookline.models.detector import Detector

TARGETS = {
    "boxes": torch.tensor([[[8.0, 12, 24, 36], [40, 4, 60, 20]], [[0, 0, 16, 16], [0, 0, 0, 0]]]),
    "labels": torch.tensor([[0, 2], [1, -1]]),
}


def ideal(model):
    """Return the raw output that fits the targets."""
    raw = torch.zeros(2, 7, 16, 16)
    objects = model.encode(raw, TARGETS)
    raw[:, :3] = torch.where(objects.heat == 1, 10.0, -10.0)
    raw[objects.image, 3:, objects.y, objects.x] = objects.geometry
    return raw


def test_decoding_inverts_encoding():
    model = Detector(num_classes=3, width=4)
    found = model.decode(ideal(model))
    for number, (boxes, labels) in enumerate(zip(TARGETS["boxes"], TARGETS["labels"], strict=True)):
        sure = found[number]["scores"] > 0.5
        order = found[number]["labels"][sure].argsort()
        assert found[number]["labels"][sure][order].tolist() == labels[labels >= 0].tolist()
        torch.testing.assert_close(found[number]["boxes"][sure][order], boxes[labels >= 0])


def test_the_loss_is_least_for_the_ideal_output():
    model = Detector(num_classes=3, width=4)
    assert model.loss(ideal(model), TARGETS) < 0.01 < model.loss(torch.zeros(2, 7, 16, 16), TARGETS)


def test_images_without_objects_have_a_finite_loss():
    model = Detector(num_classes=3, width=4)
    nothing = {"boxes": torch.zeros(2, 1, 4), "labels": torch.full((2, 1), -1)}
    outputs = model.train_step((torch.rand(2, 3, 64, 64), nothing))
    outputs["loss"].backward()
    assert outputs["loss"].isfinite()


@pytest.mark.exhaustive
def test_the_config_reaches_its_stated_score(tmp_path):
    runner = Runner.from_config("hookline/configs/shapes_detection.yaml", [f"work_dir={tmp_path}"])
    runner.train()
    assert runner.metrics["ap50"] >= 0.9
    assert len(list((tmp_path / "visualizations").rglob("*.png"))) >= 4
