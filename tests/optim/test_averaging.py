"""The average of a model's weights, and its exchange with them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from hookline.optim.averaging import (
    WeightAverage,
    annealed_momentum,
    average_buffers,
    warmup_momentum,
)
from tests.helpers import small_model


def changed(model: nn.Module, by: float = 1.0) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += by


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(deadline=None, max_examples=50)
def test_it_stays_between_the_weights_that_it_has_seen(shares):
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 0.0)
    average = WeightAverage(model)
    for share in shares:
        changed(model)
        average.update(share)
        assert -1e-6 <= average.average[0].item() <= model.weight.item() + 1e-6


def test_a_weight_of_0_keeps_the_average_and_1_replaces_it():
    model = small_model()
    average = WeightAverage(model)
    first = average.average[0].clone()
    changed(model)
    average.update(0.0)
    assert torch.equal(average.average[0], first)
    average.update(1.0)
    assert torch.equal(average.average[0], model[0].weight)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 10**6), st.integers(1, 10**4))
def test_momentum_never_exceeds_the_given_one_and_never_falls_with_time(momentum, at, length):
    for rule in (warmup_momentum, annealed_momentum):
        assert 0 <= rule(momentum, at, length) <= rule(momentum, at + 1, length) <= momentum


def test_swapping_copies_nothing_and_is_undone():
    model = small_model()
    average = WeightAverage(model)
    changed(model)
    own, averaged = model[0].weight.data_ptr(), average.average[0].data_ptr()
    average.swap_in()
    average.swap_in()
    assert average.swapped
    assert model[0].weight.data_ptr() == averaged
    average.restart()  # with the model's own weights, although it does not hold them now
    average.swap_out()
    average.swap_out()
    assert model[0].weight.data_ptr() == own
    assert torch.equal(average.average[0], model[0].weight)


def test_an_optimizer_continues_with_the_weights_after_a_swap():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    average = WeightAverage(model)
    average.swap_in()
    average.swap_out()
    before = model[0].weight.detach().clone()
    model(torch.ones(2, 6)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[0].weight, before)
    assert torch.equal(average.average[0], before)


def test_weights_of_several_dtypes_are_averaged_in_their_dtype():
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2).double()])
    average = WeightAverage(model)
    changed(model)
    average.update(0.5)
    assert [tensor.dtype for tensor in average.average] == [torch.float32] * 2 + [torch.float64] * 2
    torch.testing.assert_close(average.average[2], model[1].weight.detach() - 0.5)


def test_an_average_on_another_device_is_updated_there_and_swapped_in():
    model = nn.Linear(
        2, 2, device="meta"
    )  # a device that every machine has; values are for the other tests
    average = WeightAverage(model)
    average._elsewhere, average.average = (
        True,
        [torch.zeros_like(tensor, device="meta") for tensor in average.live],
    )
    average.update(0.5)
    average.swap_in()
    assert model.weight.device.type == "meta"
    average.swap_out()


def test_a_state_round_trips_and_a_missing_tensor_is_an_error():
    model = small_model()
    average = WeightAverage(model)
    state = {key: value.clone() for key, value in average.state_dict().items()}
    changed(model)
    average.update(1.0)
    average.load_state_dict(state)
    assert torch.equal(average.average[0], state["0.weight"])
    del state["2.bias"]
    with pytest.raises(KeyError, match=r"2\.bias"):
        average.load_state_dict(state)


def test_buffers_of_a_single_process_stay_unchanged():
    model = nn.BatchNorm1d(2)
    average_buffers(model)
    assert torch.equal(model.running_var, torch.ones(2))


def test_the_average_of_bfloat16_weights_is_kept_in_float32():
    model = nn.Linear(2, 2).bfloat16()
    with torch.no_grad():
        model.weight.fill_(1.0)
    average = WeightAverage(model)
    with torch.no_grad():
        model.weight.fill_(2.0)
    for _ in range(3):
        average.update(0.001)  # too small a change of 1.0 for bfloat16
    assert average.average[0].dtype == torch.float32
    assert torch.allclose(average.average[0], torch.full((2, 2), 2.0 - 0.999**3))
    average.swap_in()
    assert model.weight.dtype == torch.bfloat16
    average.swap_out()
    assert torch.equal(model.weight, torch.full((2, 2), 2.0).bfloat16())
    other = WeightAverage(nn.Linear(2, 2).bfloat16())
    other.load_state_dict(average.state_dict())
    assert torch.equal(other.average[0], average.average[0])
