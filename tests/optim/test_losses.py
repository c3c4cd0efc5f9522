from __future__ import annotations

import pytest
from torch import nn

from hookline.optim.losses import LOSSES


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("CrossEntropyLoss", nn.CrossEntropyLoss),
        ("cross_entropy", nn.CrossEntropyLoss),
        ("bce_with_logits", nn.BCEWithLogitsLoss),
        ("kl_div", nn.KLDivLoss),
        ("l1", nn.L1Loss),
        ("mse", nn.MSELoss),
        ("nll", nn.NLLLoss),
        ("smooth_l1", nn.SmoothL1Loss),
    ],
)
def test_a_loss_has_the_name_of_torch_and_a_short_one(name: str, cls: type[nn.Module]) -> None:
    assert LOSSES.get(name) is cls


def test_a_deprecated_loss_is_left_out() -> None:
    assert "NLLLoss2d" not in list(LOSSES)
