"""A run with all pictures on ends bit-identical to one without."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

from hookline.checkpoint import diff
from hookline.engine import BaseHook
from hookline.hooks import (
    AttentionMapHook,
    CAMHook,
    DetVisualizationHook,
    EvalHook,
    FeatureMapHook,
    GradientCumulativeOptimizerHook,
    GradientFlowHook,
    OptimizerHook,
    SaliencyHook,
    SegVisualizationHook,
    VisualizationHook,
)
from hookline.models.detector import Detector
from tests.helpers import make_runner
from tests.visual.picture_parts import Transformer, conv_model, images

EVERYWHERE = {"FeatureMapHook", "GradientFlowHook"}
CLASSES = EVERYWHERE | {"VisualizationHook", "CAMHook", "SaliencyHook"}


def segmenter():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout2d(0.5), nn.Conv2d(4, 3, 1)
    )


def detector():
    torch.manual_seed(0)
    return Detector(3, 3, width=4)


def masks(count=4, seed=0):
    return [(inputs, (inputs[:, 0] * 3).long()) for inputs, _ in images(count, seed=seed)]


def boxes(count=4, seed=0):
    found = {"boxes": torch.tensor([[[4.0, 30, 24, 50]]] * 5), "labels": torch.tensor([[1]] * 5)}
    return [
        (nn.functional.interpolate(inputs, (64, 64)), found)
        for inputs, _ in images(count, channels=3, seed=seed)
    ]


def all_picture_hooks():
    every = {"interval": 1, "max_samples": 2}
    return [
        VisualizationHook(interval=1, backend="matplotlib"),
        DetVisualizationHook(interval=1, backend="pillow", score_thr=0.0),
        SegVisualizationHook(interval=1, backend="pillow"),
        FeatureMapHook(frequency=1),
        AttentionMapHook(frequency=1),
        CAMHook(layer=None, **every),
        SaliencyHook(**every),
        GradientFlowHook(frequency=1),
    ]


class Recorder(BaseHook):
    """Records losses and modes of each iteration, and metrics of each validation."""

    def __init__(self):
        self.recorded = []

    def after_train_iter(self, runner):
        self.recorded.append(
            (runner.loss.item(), [module.training for module in runner.model.modules()])
        )

    def after_val_epoch(self, runner):
        self.recorded.append(dict(runner.metrics))


@pytest.mark.parametrize(
    ("make_model", "make_data", "drawn_by"),
    [
        (conv_model, images, CLASSES),
        (Transformer, images, CLASSES | {"AttentionMapHook"}),
        (segmenter, masks, EVERYWHERE | {"SegVisualizationHook"}),
        (detector, boxes, EVERYWHERE | {"DetVisualizationHook"}),
    ],
)
@pytest.mark.parametrize("accumulated", [False, True])
def test_weights_optimizer_losses_modes_metrics_and_random_numbers_are_the_same(
    tmp_path, make_model, make_data, drawn_by, accumulated
):
    def final(folder, *hooks):
        random.seed(1)
        np.random.seed(1)
        model = make_model()
        recorder = Recorder()
        torch.manual_seed(2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        owner = OptimizerHook()
        if accumulated:
            owner = GradientCumulativeOptimizerHook(cumulative_iters=2)
        parts = {
            "model": model,
            "optimizer": optimizer,
            "train_loader": make_data(),
            "val_loader": make_data(2, seed=3),
            "max_epochs": 2,
        }
        make_runner(
            tmp_path / folder, owner, EvalHook(interval=1), recorder, *hooks, **parts
        ).train()
        return (
            model.state_dict(),
            optimizer.state_dict(),
            recorder.recorded,
            (random.random(), np.random.rand(), torch.rand(1).item()),
        )

    plain = final("plain")
    drawn = final("drawn", *all_picture_hooks())
    assert diff(plain[0], drawn[0]) == []
    assert diff(plain[1], drawn[1]) == []
    assert plain[2:] == drawn[2:]
    kinds = {
        path.relative_to(tmp_path / "drawn/visualizations").parts[0]
        for path in (tmp_path / "drawn").rglob("*.png")
    }
    assert kinds == drawn_by
