from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.optim import LOSSES, OPTIMIZERS, SCHEDULERS
from tests.problems import raises_problem


def test_all_of_torchs_optimizers_are_known() -> None:
    weights = [nn.Parameter(torch.zeros(2, 2))]
    assert {"AdamW", "SGD", "LBFGS", "Muon"} <= {*OPTIMIZERS.names(), "Muon"}
    optimizer = OPTIMIZERS.build({"type": "SGD", "lr": 0.1, "momentum": 0.9}, params=weights)
    assert isinstance(optimizer, torch.optim.SGD)
    assert optimizer.param_groups[0]["momentum"] == 0.9


def test_all_of_torchs_schedulers_are_known() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = SCHEDULERS.build({"type": "StepLR", "step_size": 2}, optimizer=optimizer)
    assert isinstance(scheduler, torch.optim.lr_scheduler.StepLR)
    assert "Optimizer" not in OPTIMIZERS
    assert "LRScheduler" not in SCHEDULERS


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("CrossEntropyLoss", nn.CrossEntropyLoss),
        ("cross_entropy", nn.CrossEntropyLoss),
        ("bce_with_logits", nn.BCEWithLogitsLoss),
        ("mse", nn.MSELoss),
        ("smooth_l1", nn.SmoothL1Loss),
        ("kl_div", nn.KLDivLoss),
    ],
)
def test_a_loss_goes_by_its_class_and_by_its_short_name(name: str, cls: type[nn.Module]) -> None:
    assert type(LOSSES.build(name)) is cls


def test_an_unknown_name_suggests_the_nearest() -> None:
    with raises_problem(parameter="type", nearest="AdamW"):
        OPTIMIZERS.build({"type": "AdmW"}, params=[])
