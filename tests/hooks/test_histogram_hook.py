"""Weights and gradients, counted."""

from __future__ import annotations

import numpy as np
import torch

from hookline.engine import BaseHook
from hookline.hooks import GradientCumulativeOptimizerHook, HistogramHook
from tests.helpers import make_runner


class Keep(BaseHook):
    def before_run(self, runner):
        self.records = []
        runner.events.listeners.append(self)

    def write(self, record):
        self.records.append(record)


def test_each_parameter_and_gradient_is_counted_whole_at_the_interval(tmp_path):
    keep = Keep()
    runner = make_runner(tmp_path, HistogramHook(interval=4), keep)
    runner.train()
    assert [record.iter for record in keep.records if record.name == "weights/0/weight"] == [3, 7]
    names = {record.name for record in keep.records}
    assert names == {f"{kind}/{layer}/{part}" for kind in ("weights", "gradients") for layer in (0, 2) for part in ("weight", "bias")}
    for record in keep.records:
        counts, edges = record.value
        parameter = runner.model.get_parameter(record.name.partition("/")[2].replace("/", "."))
        assert counts.sum() == parameter.numel()
        assert np.all(np.diff(edges) > 0)


def test_where_gradients_are_accumulated_the_first_step_after_the_interval_is_counted(tmp_path):
    keep = Keep()
    owner = GradientCumulativeOptimizerHook(cumulative_iters=2)
    make_runner(tmp_path, owner, HistogramHook(interval=3, gradients=False), keep, max_iters=12).train()
    assert [record.iter for record in keep.records if record.name == "weights/0/weight"] == [3, 5, 9, 11]


def test_values_that_are_not_finite_and_tensors_that_are_constant_are_no_trouble(tmp_path):
    keep = Keep()
    runner = make_runner(tmp_path, HistogramHook(interval=1, gradients=False), keep, max_iters=1)
    with torch.no_grad():
        runner.model[0].bias.fill_(2.0)
        runner.model[2].bias.fill_(float("nan"))
        runner.model[2].weight[0, 0] = float("inf")
    runner.train()
    sizes = {record.name: int(record.value[0].sum()) for record in keep.records}
    assert sizes == {"weights/0/weight": 48, "weights/0/bias": 8, "weights/2/weight": 23}
