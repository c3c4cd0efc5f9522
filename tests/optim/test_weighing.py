"""Weights of batches; tests/dist/test_optimizers.py weighs in two processes."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from hookline.batches import stated_count
from hookline.dist import World
from hookline.hooks import GradientCumulativeOptimizerHook
from hookline.optim.weighing import GroupWeights, count_terms, rank_weight
from tests.dist.optim_jobs import TokenModel, token_batches
from tests.helpers import make_runner


def test_tokens_count_before_samples_and_both_before_the_length_of_targets() -> None:
    targets = torch.zeros(5)
    assert stated_count({"num_tokens": 7, "num_samples": 2}) == 7
    assert stated_count({"targets": targets}) is None
    assert count_terms({"num_samples": 2, "targets": targets}, None) == 2.0
    assert count_terms({"targets": targets}, None) == 5.0


def test_one_rank_has_no_weight() -> None:
    assert rank_weight({"num_tokens": 7}, World()) == 1.0


def test_a_group_is_the_mean_over_all_its_batches() -> None:
    weights = GroupWeights()
    parameter = nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    for mean, size in ((1.0, 2.0), (4.0, 6.0)):
        parameter.grad += mean * weights.add(size, size)
    weights.normalize([parameter])
    assert parameter.grad.item() == (1.0 * 2 + 4.0 * 6) / 8


def test_accumulated_batches_of_unequal_length_equal_one_batch(tmp_path: Path) -> None:
    model = TokenModel()
    hook = GradientCumulativeOptimizerHook(cumulative_iters=4)
    data = token_batches(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    make_runner(
        tmp_path, hook, model=model, optimizer=optimizer, train_loader=data, max_epochs=1
    ).train()
    plain = TokenModel()
    whole = (torch.cat([each for each, _ in data]), torch.cat([each for _, each in data]))
    plain.train_step(whole)["loss"].backward()
    torch.optim.SGD(plain.parameters(), lr=1.0).step()
    assert torch.allclose(model.layer.weight, plain.layer.weight, rtol=1e-12, atol=1e-12)
