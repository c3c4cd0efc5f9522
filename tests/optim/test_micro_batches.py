"""Steps in parts of a batch, with the gradients of the whole batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hookline.optim.micro_batches import merge, run_in_parts, split
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


def gradients(run: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    (run(model) * 3).backward()
    return [each.grad for each in model.parameters()]


def test_gradients_are_those_of_the_whole_batch_also_of_a_scaled_loss() -> None:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(7, 3, dtype=torch.float64, generator=generator)
    batch = (inputs, torch.randint(2, (7,), generator=generator))
    loss_fn = nn.CrossEntropyLoss()

    def in_parts(model: nn.Module) -> torch.Tensor:
        step = make_step(model, "train_step", loss_fn)
        return run_in_parts(step, batch, 2, list(model.parameters()))["loss"]

    whole = gradients(lambda model: loss_fn(model(batch[0]), batch[1]))
    for one, other in zip(gradients(in_parts), whole, strict=True):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-14)
