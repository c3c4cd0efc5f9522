"""A run with all pictures on ends bit-identical to one without."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from hookline.engine import BaseHook
from hookline.hooks import (
    AttentionMapHook,
    CAMHook,
    EvalHook,
    FeatureMapHook,
    GradientFlowHook,
    OptimizerHook,
    SaliencyHook,
    VisualizationHook,
)
from tests.helpers import make_runner
from tests.visual.picture_parts import Transformer, conv_model, images


def all_pictures():
    every = {"interval": 1, "max_samples": 2}
    return [
        VisualizationHook(interval=1, backend="pillow"),
        FeatureMapHook(frequency=1),
        AttentionMapHook(frequency=1),
        CAMHook(layer=None, **every),
        SaliencyHook(**every),
        GradientFlowHook(frequency=1),
    ]


class Watch(BaseHook):
    """Notes the loss of each iteration, the modes, and the metrics of each validation."""

    def __init__(self):
        self.seen = []

    def after_train_iter(self, runner):
        self.seen.append((runner.loss.item(), [module.training for module in runner.model.modules()]))

    def after_val_epoch(self, runner):
        self.seen.append(dict(runner.metrics))


@pytest.mark.parametrize("make_model", [conv_model, Transformer])
@pytest.mark.parametrize("accumulated", [False, True])
def test_weights_optimizer_losses_modes_metrics_and_random_numbers_are_the_same(tmp_path, make_model, accumulated):
    def final(folder, *hooks):
        random.seed(1), np.random.seed(1)
        model, watch = make_model(), Watch()
        torch.manual_seed(2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        owner = OptimizerHook() if not accumulated else {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 2}
        from hookline import HOOKS

        parts = {"model": model, "optimizer": optimizer, "train_loader": images(), "val_loader": images(2, seed=3), "max_epochs": 2}
        make_runner(tmp_path / folder, HOOKS.build(owner), EvalHook(interval=1), watch, *hooks, **parts).train()
        return model.state_dict(), optimizer.state_dict(), watch.seen, (random.random(), np.random.rand(), torch.rand(1).item())

    plain, drawn = final("plain"), final("drawn", *all_pictures())
    assert all(torch.equal(plain[0][key], drawn[0][key]) for key in plain[0])
    assert str(plain[1]) == str(drawn[1])
    assert plain[2:] == drawn[2:]
    kinds = {path.relative_to(tmp_path / "drawn/visualizations").parts[0] for path in (tmp_path / "drawn").rglob("*.png")}
    assert kinds >= {"VisualizationHook", "FeatureMapHook", "CAMHook", "SaliencyHook", "GradientFlowHook"}
