"""Histograms of weights and gradients."""

from __future__ import annotations

import numpy as np
import torch

from hookline.hooks import GradientCumulativeOptimizerHook, HistogramHook
from tests.helpers import make_runner
from tests.visual.picture_parts import Records


def test_all_values_of_each_parameter_and_gradient_are_counted_every_interval(tmp_path):
    records = Records()
    runner = make_runner(tmp_path, HistogramHook(interval=4), records)
    runner.train()
    assert [record.iter for record in records.records if record.name == "weights/0/weight"] == [
        4,
        8,
    ]
    names = {record.name for record in records.records}
    assert names == {
        f"{kind}/{layer}/{part}"
        for kind in ("weights", "gradients")
        for layer in (0, 2)
        for part in ("weight", "bias")
    }
    for record in records.records:
        counts, edges = record.value
        parameter = runner.model.get_parameter(record.name.partition("/")[2].replace("/", "."))
        assert counts.sum() == parameter.numel()
        assert np.all(np.diff(edges) > 0)


def test_accumulated_gradients_are_counted_at_the_next_optimizer_step(tmp_path):
    records = Records()
    owner = GradientCumulativeOptimizerHook(cumulative_iters=2)
    make_runner(
        tmp_path, owner, HistogramHook(interval=3, gradients=False), records, max_iters=12
    ).train()
    assert [record.iter for record in records.records if record.name == "weights/0/weight"] == [
        4,
        6,
        10,
        12,
    ]


def test_values_that_are_not_finite_are_left_out_and_constant_tensors_are_counted(tmp_path):
    records = Records()
    runner = make_runner(tmp_path, HistogramHook(interval=1, gradients=False), records, max_iters=1)
    with torch.no_grad():
        runner.model[0].bias.fill_(2.0)
        runner.model[2].bias.fill_(float("nan"))
        runner.model[2].weight[0, 0] = float("inf")
    runner.train()
    sizes = {record.name: int(record.value[0].sum()) for record in records.records}
    assert sizes == {"weights/0/weight": 48, "weights/0/bias": 8, "weights/2/weight": 23}
