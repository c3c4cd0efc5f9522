"""Steps in parts of a batch, with the gradients of the whole batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hookline.errors import HooklineError
from hookline.optim.micro_batches import (
    count_part_terms,
    differentiate_in_parts,
    evaluate_in_parts,
    known_loss,
    merge,
    split,
)
from hookline.step import make_step


def test_a_batch_is_cut_wherever_it_has_one_item_per_sample() -> None:
    batch = {
        "x": torch.arange(5),
        "names": list("abcde"),
        "scale": torch.tensor(2.0),
        "deep": [torch.zeros(5, 2)],
    }
    parts = list(split(batch, 2))
    assert [part["x"].tolist() for part in parts] == [[0, 1], [2, 3], [4]]
    assert [part["names"] for part in parts] == [["a", "b"], ["c", "d"], ["e"]]
    assert [len(part["deep"][0]) for part in parts] == [2, 2, 1]
    assert all(part["scale"] == 2.0 for part in parts)


def test_a_pair_of_two_samples_is_not_cut_into_its_parts() -> None:
    pairs = list(split((torch.zeros(2, 3), torch.ones(2)), 1))
    assert [(len(x), len(y)) for x, y in pairs] == [(1, 1), (1, 1)]


def test_outputs_are_joined_and_losses_averaged_by_their_weights() -> None:
    first = {
        "loss": torch.tensor(1.0),
        "predictions": torch.zeros(1, 2),
        "num_tokens": 1,
        "ids": ["a"],
        "targets": None,
    }
    second = {
        "loss": torch.tensor(4.0),
        "predictions": torch.ones(2, 2),
        "num_tokens": 3,
        "ids": ["b"],
        "targets": None,
    }
    merged = merge([(first, 1.0), (second, 3.0)])
    assert merged["loss"].item() == 3.25
    assert merged["predictions"].shape == (3, 2)
    assert merged["num_tokens"] == 4
    assert merged["ids"] == ["a", "b"]
    assert merged["targets"] is None


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()


def make_batch(targets: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(7, 3, dtype=torch.float64, generator=generator)
    if targets is None:
        targets = torch.randint(2, (7,), generator=generator)
    return inputs, targets


def in_parts(model: nn.Module, batch: Any, loss_fn: Any, size: int, scale: float = 1.0) -> Any:
    """Return outputs of a batch that is run in parts; their loss has the known gradients."""
    step = make_step(model, "train_step", loss_fn)
    parameters = list(model.parameters())
    outputs, gradients = differentiate_in_parts(
        step, batch, size, parameters, lambda loss: loss * scale, loss_fn
    )
    factor = torch.tensor(scale, dtype=torch.float64)
    loss = known_loss(outputs["loss"], parameters, gradients, factor, is_averaged=False)
    return {**outputs, "loss": loss}


def gradients_of(model: nn.Module) -> list[torch.Tensor]:
    return [each.grad for each in model.parameters()]  # type: ignore[misc]


def assert_close(ours: nn.Module, plain: nn.Module) -> None:
    for one, other in zip(gradients_of(ours), gradients_of(plain), strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-14)


WEIGHTED = nn.CrossEntropyLoss(weight=torch.tensor([0.3, 2.0], dtype=torch.float64))
IGNORING = torch.tensor([0, -100, -100, 1, 0, 1, -100])


@pytest.mark.parametrize("scale", [1.0, 1024.0])
@pytest.mark.parametrize("loss_fn", [nn.CrossEntropyLoss(), WEIGHTED])
@pytest.mark.parametrize("targets", [None, IGNORING])
def test_gradients_are_those_of_the_whole_batch(
    targets: torch.Tensor | None, loss_fn: nn.Module, scale: float
) -> None:
    batch = make_batch(targets)
    ours, plain = network(), network()
    loss = in_parts(ours, batch, loss_fn, 2, scale)["loss"]
    whole = loss_fn(plain(batch[0]), batch[1])
    assert torch.allclose(loss, whole, rtol=1e-12)
    (loss * 3).backward()
    (whole * 3).backward()
    assert_close(ours, plain)


def test_a_part_without_terms_counts_nothing() -> None:
    batch = make_batch(torch.tensor([0, 1, -100, -100, 1, 0, 1]))
    ours, plain = network(), network()
    loss_fn = nn.CrossEntropyLoss()
    in_parts(ours, batch, loss_fn, 2)["loss"].backward()
    loss_fn(plain(batch[0]), batch[1]).backward()
    assert_close(ours, plain)


def test_gradients_add_to_those_of_earlier_batches() -> None:
    batch = make_batch()
    ours, plain = network(), network()
    loss_fn = nn.CrossEntropyLoss()
    for _ in range(2):
        in_parts(ours, batch, loss_fn, 3)["loss"].backward()
        loss_fn(plain(batch[0]), batch[1]).backward()
    assert_close(ours, plain)


def test_hooks_on_parameters_see_each_gradient_once() -> None:
    batch = make_batch()
    ours, plain = network(), network()
    loss_fn = nn.CrossEntropyLoss()
    for model in (ours, plain):
        for parameter in model.parameters():
            parameter.register_hook(lambda gradient: gradient * 0.5)
    in_parts(ours, batch, loss_fn, 3)["loss"].backward()
    loss_fn(plain(batch[0]), batch[1]).backward()
    assert_close(ours, plain)


def test_a_failed_part_leaves_earlier_gradients_alone() -> None:
    batch = make_batch()
    model = network()
    loss_fn = nn.CrossEntropyLoss()
    loss_fn(model(batch[0]), batch[1]).backward()
    before = [each.clone() for each in gradients_of(model)]

    def step(part: Any) -> dict[str, Any]:
        if len(part[0]) == 1:  # the last one
            raise torch.OutOfMemoryError
        return make_step(model, "train_step", loss_fn)(part)

    with pytest.raises(torch.OutOfMemoryError):
        differentiate_in_parts(step, batch, 3, list(model.parameters()), lambda loss: loss, loss_fn)
    for one, other in zip(gradients_of(model), before, strict=True):
        assert torch.equal(one, other)


def test_a_second_backward_pass_through_predictions_is_an_error() -> None:
    outputs = in_parts(network(), make_batch(), nn.CrossEntropyLoss(), 3)
    with pytest.raises(RuntimeError):
        (outputs["loss"] + outputs["predictions"].square().mean()).backward()


def test_ignored_targets_of_a_model_that_states_no_count_are_an_error() -> None:
    outputs = {"loss": torch.tensor(1.0), "targets": IGNORING}
    batch = make_batch(IGNORING)
    assert count_part_terms(outputs, batch, batch) == 7.0
    assert count_part_terms({**outputs, "num_tokens": 4}, batch[:1], batch) == 4.0
    with pytest.raises(HooklineError):
        count_part_terms(outputs, batch[:1], batch)


def test_evaluations_have_the_outputs_of_the_whole_batch() -> None:
    batch = make_batch(IGNORING)
    model, loss_fn = network(), nn.CrossEntropyLoss()
    step = make_step(model, "val_step", loss_fn)
    with torch.no_grad():
        whole, parts = step(batch), evaluate_in_parts(step, batch, 2, loss_fn)
    assert torch.allclose(parts["loss"], whole["loss"], rtol=1e-12)
    assert torch.allclose(parts["predictions"], whole["predictions"], rtol=1e-12)
