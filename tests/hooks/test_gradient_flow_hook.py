"""GradientFlowHook: measurements, charts, and warnings of vanishing and exploding gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import GradientCumulativeOptimizerHook, GradientFlowHook
from hookline.hooks.gradient_flow_hook import MAX_HISTORY
from hookline.visual.backends import render
from hookline.visual.bars import draw_gradient_history
from hookline.visual.gradients import measure_gradient_flow
from tests.helpers import batches, make_runner, small_model
from tests.visual.picture_parts import Records


class Scale(nn.Module):
    """Returns its input, and multiplies gradients by a factor."""

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
    flow = measure_gradient_flow(model)
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
    flow = measure_gradient_flow(model)
    assert list(flow) == ["0", "2"]
    gradient = model[0].weight.grad.to_dense().abs()
    assert flow["0"] == pytest.approx((gradient.mean().item(), gradient.max().item()))


def test_a_model_without_gradients_has_no_flow():
    assert measure_gradient_flow(nn.Sequential(nn.Flatten())) == {}


def test_a_bar_chart_is_saved_and_recorded_when_due(tmp_path):
    records = Records()
    make_runner(tmp_path, GradientFlowHook(frequency=3), records).train()
    bars = [record for record in records.records if record.name == "GradientFlowHook"]
    assert [(record.kind, record.iter) for record in bars] == [
        ("image", step) for step in (0, 3, 6)
    ]
    files = sorted(
        path.name for path in (tmp_path / "visualizations/GradientFlowHook").glob("*.png")
    )
    assert files == ["step_000000.png", "step_000003.png", "step_000006.png"]


def accumulating(iterations):
    return GradientCumulativeOptimizerHook(cumulative_iters=iterations)


def test_accumulated_gradients_are_drawn_at_the_next_optimizer_step(
    tmp_path,
):
    records = Records()
    hook = GradientFlowHook(frequency=4)
    make_runner(tmp_path, accumulating(2), hook, records, max_iters=12).train()
    assert [record.iter for record in records.records if record.name == "GradientFlowHook"] == [
        1,
        5,
        9,
    ]
    assert hook.steps == [1, 5, 9]


@pytest.mark.parametrize("cut", [2, 4, 6, 8])
def test_a_resumed_run_with_accumulation_measures_the_same_iterations(tmp_path, cut):
    def run(*hooks, **parts):
        hook = GradientFlowHook(frequency=4)
        saving = {"type": "CheckpointHook", "by_epoch": False, "interval": 2, "save_best": False}
        make_runner(tmp_path, accumulating(2), hook, saving, *hooks, max_iters=12, **parts).train()
        return hook

    run({"type": "StopAtHook", "iter": cut})
    assert run(resume="auto").steps == [1, 5, 9]


def test_heat_maps_of_all_measurements_are_drawn_at_the_end(
    tmp_path,
):
    records = Records()
    hook = GradientFlowHook(frequency=3)
    flows = []

    class Measure(BaseHook):
        def after_backward(self, runner):
            if runner.iter % 3 == 0:
                flows.append(measure_gradient_flow(runner.model))

    make_runner(tmp_path, hook, Measure(), records).train()
    mean, largest = [record for record in records.records if "history" in record.name]
    assert (mean.name, largest.name) == (
        "GradientFlowHook/history",
        "GradientFlowHook/history_largest",
    )
    assert mean.iter == largest.iter == 8
    assert hook.steps == [0, 3, 6]
    for which, rows in enumerate((hook.history, hook.largest)):
        assert rows == {name: [flow[name][which] for flow in flows] for name in ("0", "2")}
        assert list(rows) == ["0", "2"]  # in the order of the model
    assert np.array_equal(
        mean.value,
        render(draw_gradient_history(hook.history, hook.steps, "gradients over training")),
    )
    title = "largest gradients over training"
    assert np.array_equal(
        largest.value,
        render(draw_gradient_history(hook.largest, hook.steps, title, "largest |gradient|")),
    )


def test_the_history_of_a_long_run_stays_small_and_spans_all_of_it(tmp_path):
    hook = GradientFlowHook(frequency=1)
    make_runner(tmp_path, hook, max_iters=300).train()
    assert len(hook.steps) <= MAX_HISTORY
    assert all(
        len(row) == len(hook.steps)
        for rows in (hook.history, hook.largest)
        for row in rows.values()
    )
    assert hook.steps[0] == 0
    assert hook.steps[-1] >= 296


def test_a_resumed_run_continues_the_history():
    first = GradientFlowHook()
    first._remember(0, {"a": (1.0, 2.0)})
    resumed = GradientFlowHook()
    resumed.load_state_dict(first.state_dict())
    resumed._remember(100, {"a": (3.0, 4.0), "new": (5.0, 6.0)})
    assert resumed.steps == [0, 100]
    assert resumed.history["a"] == [1.0, 3.0]
    assert resumed.largest["a"] == [2.0, 4.0]
    assert math.isnan(resumed.history["new"][0])
    assert math.isnan(resumed.largest["new"][0])


def test_histograms_of_weights_and_gradients_are_drawn_and_recorded(tmp_path):
    records = Records()
    model = small_model()
    weights = model[0].weight.detach().flatten()[:3].tolist()
    make_runner(tmp_path, GradientFlowHook(), records, model=model, max_iters=1).train()
    histograms = {
        record.name: record.value for record in records.records if record.kind == "histogram"
    }
    assert sorted(histograms) == ["gradients/0", "gradients/2", "weights/0", "weights/2"]
    assert histograms["weights/0"].shape == (8 * 6 + 8,)
    assert histograms["weights/0"][:3].tolist() == weights  # those before the step
    assert (tmp_path / "visualizations/GradientFlowHook/histograms/step_000000.png").exists()


def test_a_model_with_normal_gradients_gets_no_warning(tmp_path, caplog):
    make_runner(tmp_path, GradientFlowHook(frequency=1), max_epochs=1).train()
    assert gradient_warnings(caplog) == []


@pytest.mark.parametrize(
    ("factor", "word"), [(1e-9, "vanishing"), (1e6, "exploding"), (float("nan"), "exploding")]
)
def test_vanishing_and_exploding_layers_are_named_in_one_warning(tmp_path, caplog, factor, word):
    make_runner(tmp_path, GradientFlowHook(), model=scaled_model(factor), max_iters=1).train()
    (message,) = gradient_warnings(caplog)
    assert message.startswith("GradientFlowHook: at iteration 1 gradients are ")
    assert word in message
    if factor == factor:
        assert message.endswith("in 0")


def test_the_warning_is_not_repeated_for_the_same_layers(tmp_path, caplog):
    model = scaled_model(1e-9)
    make_runner(tmp_path, GradientFlowHook(frequency=1), model=model, max_epochs=2).train()
    assert len(gradient_warnings(caplog)) == 1


def test_a_warning_names_only_some_of_many_layers(tmp_path, caplog):
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

    plain = final()
    measured = final(GradientFlowHook(frequency=1))
    assert all(torch.equal(plain[key], measured[key]) for key in plain)


def test_a_frequency_below_one_is_rejected():
    with pytest.raises(ConfigError) as caught:
        GradientFlowHook(frequency=0)
    assert (caught.value.component, caught.value.parameter) == ("GradientFlowHook", "frequency")
