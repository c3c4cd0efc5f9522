"""Weights of a checkpoint that are loaded into a model."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint.weights import load_weights
from hookline.errors import HooklineError
from tests.helpers import batches, small_model
from tests.problems import logged

log = logging.getLogger("hookline")


def test_weights_are_loaded_from_a_checkpoint_and_from_a_plain_state_dict() -> None:
    source = small_model(seed=1)
    for weights in ({"state_dict": source.state_dict(), "meta": {}}, source.state_dict()):
        model = small_model(seed=2)
        load_weights(model, weights)
        assert torch.equal(model[0].weight, source[0].weight)


def test_weights_that_do_not_fit_are_rejected_before_any_change() -> None:
    model = small_model(classes=4)
    before = model[0].weight.clone()
    with pytest.raises(HooklineError, match=r"2\.weight.*\(4, 8\).*\(3, 8\)"):
        load_weights(model, small_model(seed=1, classes=3).state_dict())
    assert torch.equal(model[0].weight, before)


def test_without_strict_the_weights_that_do_not_fit_are_skipped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = small_model(seed=1, classes=3)
    model = small_model(classes=4)
    load_weights(model, {**source.state_dict(), "extra": torch.ones(1)}, False, log)
    assert torch.equal(model[0].weight, source[0].weight)
    assert logged(caplog, "2.weight", "extra")


def test_a_long_list_of_names_is_shortened() -> None:
    names = nn.Sequential(*(nn.Linear(1, 1) for _ in range(10))).state_dict()
    with pytest.raises(HooklineError, match="and 14 more"):
        load_weights(nn.Sequential(), names)


def test_a_runner_loads_weights_that_fit_if_it_is_not_strict(tmp_path) -> None:
    path = tmp_path / "weights.pth"
    source = small_model(seed=1, classes=3)
    torch.save(source.state_dict(), path)
    model = small_model(classes=4)
    runner = Runner(
        model,
        train_loader=batches(1),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        loss_fn=nn.CrossEntropyLoss(),
        work_dir=tmp_path / "run",
        max_epochs=1,
        load_from=path,
        load_strict=False,
    )
    runner.train()
    assert torch.equal(model[0].weight, source[0].weight)
