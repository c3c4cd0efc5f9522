"""GradientFlowHook: right numbers, a picture, and a warning that names layers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.hooks import GradientCumulativeOptimizerHook, GradientFlowHook
from hookline.hooks.gradient_flow_hook import COLUMNS, measure_flow
from hookline.visual.bars import history_picture
from hookline.visual.render import render
from tests.helpers import batches, make_runner, small_model


class Scale(nn.Module):
    """Passes its input on, and gradients times a factor."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, inputs):
        return inputs * self.factor + inputs.detach() * (1 - self.factor)


def scaled_model(factor):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), Scale(factor), nn.ReLU(), nn.Linear(8, 3))


def gradient_warnings(caplog):
    return [message for message in caplog.messages if "gradients are" in message]


def test_mean_and_largest_are_over_all_parameters_of_a_layer():
    model = small_model()
    inputs, targets = batches(1)[0]
    nn.functional.cross_entropy(model(inputs), targets).backward()
    flow = measure_flow(model)
    assert list(flow) == ["0", "2"]
    for index, (mean, largest) in flow.items():
        layer = model[int(index)]
        every = torch.cat([layer.weight.grad.flatten(), layer.bias.grad]).abs()
        assert mean == pytest.approx(every.mean().item())
        assert largest == every.max().item()


def test_frozen_layers_and_sparse_gradients_are_handled():
    model = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Linear(2, 1), nn.Linear(1, 1))
    model[1].requires_grad_(False)
    model(torch.tensor([1, 1])).sum().backward()
    flow = measure_flow(model)
    assert list(flow) == ["0", "2"]
    gradient = model[0].weight.grad.to_dense().abs()
    assert flow["0"] == pytest.approx((gradient.mean().item(), gradient.max().item()))


def test_a_model_without_gradients_has_no_flow():
    assert measure_flow(nn.Sequential(nn.Flatten())) == {}


class Listen(BaseHook):
    def __init__(self):
        self.records = []

    def before_run(self, runner):
        runner.events.listeners.append(self)

    def write(self, record):
        self.records.append(record)


def test_a_bar_chart_is_saved_and_recorded_when_due(tmp_path):
    listen = Listen()
    make_runner(tmp_path, GradientFlowHook(frequency=3), listen).train()
    bars = [record for record in listen.records if record.name == "GradientFlowHook"]
    assert [(record.kind, record.iter) for record in bars] == [("image", step) for step in (0, 3, 6)]
    files = sorted(path.name for path in (tmp_path / "visualizations/GradientFlowHook").glob("*.png"))
    assert files == ["step_000000.png", "step_000003.png", "step_000006.png"]


def accumulating(iterations):
    return GradientCumulativeOptimizerHook(cumulative_iters=iterations)


def test_where_gradients_are_accumulated_it_is_drawn_at_the_first_step_at_or_after_the_iteration_that_is_due(tmp_path):
    listen, hook = Listen(), GradientFlowHook(frequency=4)
    make_runner(tmp_path, accumulating(2), hook, listen, max_iters=12).train()
    assert [record.iter for record in listen.records if record.name == "GradientFlowHook"] == [1, 5, 9]
    assert hook.steps == [1, 5, 9]


@pytest.mark.parametrize("cut", [2, 4, 6, 8])
def test_a_resumed_run_that_accumulates_looks_at_the_same_iterations(tmp_path, cut):
    def run(*hooks, **parts):
        hook = GradientFlowHook(frequency=4)
        saving = {"type": "CheckpointHook", "by_epoch": False, "interval": 2, "save_best": False}
        make_runner(tmp_path, accumulating(2), hook, saving, *hooks, max_iters=12, **parts).train()
        return hook

    run({"type": "StopAtHook", "iter": cut})
    assert run(resume="auto").steps == [1, 5, 9]


def test_heat_maps_over_training_of_mean_and_largest_are_drawn_at_the_end_of_all_that_was_measured(tmp_path):
    listen, hook, flows = Listen(), GradientFlowHook(frequency=3), []

    class Measure(BaseHook):
        def after_backward(self, runner):
            if runner.iter % 3 == 0:
                flows.append(measure_flow(runner.model))

    make_runner(tmp_path, hook, Measure(), listen).train()
    mean, largest = [record for record in listen.records if "history" in record.name]
    assert (mean.name, largest.name) == ("GradientFlowHook/history", "GradientFlowHook/history_largest")
    assert mean.iter == largest.iter == 8
    assert hook.steps == [0, 3, 6]
    for which, rows in enumerate((hook.history, hook.largest)):
        assert rows == {name: [flow[name][which] for flow in flows] for name in ("0", "2")}
        assert list(rows) == ["0", "2"]  # in the order of the model
    assert np.array_equal(mean.value, render(history_picture(hook.history, hook.steps, "gradients over training")))
    title = "largest gradients over training"
    assert np.array_equal(largest.value, render(history_picture(hook.largest, hook.steps, title, "largest |gradient|")))


def test_the_history_of_a_long_run_stays_small_and_spans_all_of_it(tmp_path):
    hook = GradientFlowHook(frequency=1)
    make_runner(tmp_path, hook, max_iters=300).train()
    assert len(hook.steps) <= COLUMNS
    assert all(len(row) == len(hook.steps) for rows in (hook.history, hook.largest) for row in rows.values())
    assert hook.steps[0] == 0
    assert hook.steps[-1] >= 296


def test_a_resumed_run_continues_the_history():
    one, two = GradientFlowHook(), GradientFlowHook()
    one._remember(0, {"a": (1.0, 2.0)})
    two.load_state_dict(one.state_dict())
    two._remember(100, {"a": (3.0, 4.0), "new": (5.0, 6.0)})
    assert two.steps == [0, 100]
    assert (two.history["a"], two.largest["a"]) == ([1.0, 3.0], [2.0, 4.0])
    assert math.isnan(two.history["new"][0])
    assert math.isnan(two.largest["new"][0])


def test_histograms_of_weights_and_gradients_are_drawn_and_recorded(tmp_path):
    listen, model = Listen(), small_model()
    weights = model[0].weight.detach().flatten()[:3].tolist()
    make_runner(tmp_path, GradientFlowHook(), listen, model=model, max_iters=1).train()
    histograms = {record.name: record.value for record in listen.records if record.kind == "histogram"}
    assert sorted(histograms) == ["gradients/0", "gradients/2", "weights/0", "weights/2"]
    assert histograms["weights/0"].shape == (8 * 6 + 8,)
    assert histograms["weights/0"][:3].tolist() == weights  # of before the step, although they have changed since
    assert (tmp_path / "visualizations/GradientFlowHook/histograms/step_000000.png").exists()


def test_a_sound_model_gets_no_warning(tmp_path, caplog):
    make_runner(tmp_path, GradientFlowHook(frequency=1), max_epochs=1).train()
    assert gradient_warnings(caplog) == []


@pytest.mark.parametrize(("factor", "word"), [(1e-9, "vanishing"), (1e6, "exploding"), (float("nan"), "exploding")])
def test_vanishing_and_exploding_layers_are_named_in_one_warning(tmp_path, caplog, factor, word):
    make_runner(tmp_path, GradientFlowHook(), model=scaled_model(factor), max_iters=1).train()
    (message,) = gradient_warnings(caplog)
    assert message.startswith("GradientFlowHook: at iteration 1 gradients are ")
    assert word in message
    if factor == factor:
        assert message.endswith("in 0")


def test_the_same_layers_are_not_warned_of_again(tmp_path, caplog):
    model = scaled_model(1e-9)
    make_runner(tmp_path, GradientFlowHook(frequency=1), model=model, max_epochs=2).train()
    assert len(gradient_warnings(caplog)) == 1


def test_a_warning_of_many_layers_stays_short(tmp_path, caplog):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(6, 6) for _ in range(20)], Scale(1e-9), nn.Linear(6, 3))
    make_runner(tmp_path, GradientFlowHook(), model=model, max_iters=1).train()
    (message,) = gradient_warnings(caplog)
    assert message.endswith("and 12 more")


def test_a_run_with_it_ends_bit_identical_to_one_without(tmp_path):
    def final(*hooks):
        model = small_model()
        make_runner(tmp_path, *hooks, model=model).train()
        return model.state_dict()

    plain, watched = final(), final(GradientFlowHook(frequency=1))
    assert all(torch.equal(plain[key], watched[key]) for key in plain)


def test_a_frequency_below_one_is_refused():
    with pytest.raises(ValueError, match="frequency"):
        GradientFlowHook(frequency=0)
