"""The segmenter gives each pixel a score for each class."""

from __future__ import annotations

import pytest
import torch

from hookline import Runner
from hookline.models.segmenter import Segmenter


def test_scores_have_the_size_of_the_image():
    assert Segmenter(in_channels=1, num_classes=5, width=2)(torch.rand(2, 1, 32, 48)).shape == (
        2,
        5,
        32,
        48,
    )


@pytest.mark.exhaustive
def test_the_config_reaches_its_stated_score(tmp_path):
    runner = Runner.from_config(
        "hookline/configs/shapes_segmentation.yaml", [f"work_dir={tmp_path}"]
    )
    runner.train()
    assert runner.metrics["iou"] >= 0.9
    assert len(list((tmp_path / "visualizations").rglob("*.png"))) >= 4
