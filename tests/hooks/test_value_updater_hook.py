"""ValueUpdaterHook: any value on any policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.hooks import (
    CosineAnnealingLrUpdaterHook,
    CosineAnnealingMomentumUpdaterHook,
    LambdaHook,
    ValueUpdaterHook,
)
from tests.helpers import make_runner, small_model

TO_ZERO = {"type": "linear", "to": 0.0}


def two(model: nn.Module) -> dict[str, torch.optim.Optimizer]:
    return {
        "first": torch.optim.AdamW(model[0].parameters(), lr=0.1, weight_decay=0.8),
        "last": torch.optim.SGD(model[2].parameters(), lr=0.4),
    }


def used(folder: Path, *hooks: Any, **parts: Any) -> list[Any]:
    """Return the values of both optimizers in each of eight iterations."""
    model = small_model()
    optimizers = two(model)
    seen = []

    def note() -> None:
        groups = [optimizers[name].param_groups[0] for name in ("first", "last")]
        seen.append(
            [groups[0]["lr"], groups[1]["lr"], groups[0]["weight_decay"], groups[0]["betas"]]
        )

    make_runner(
        folder, *hooks, LambdaHook(after_forward=note), model=model, optimizer=optimizers, **parts
    ).train()
    return seen


def test_weight_decay_and_a_beta_follow_their_policies(tmp_path: Path) -> None:
    decay = ValueUpdaterHook("weight_decay", TO_ZERO, groups=["first"], by_epoch=False)
    beta = ValueUpdaterHook(
        "betas[1]",
        {"type": "step", "step": 4, "gamma": 0.5},
        groups=["first"],
        by_epoch=False,
        name="beta",
    )
    seen = used(tmp_path, decay, beta)
    assert [row[2] for row in seen] == pytest.approx([0.8 * (1 - index / 8) for index in range(8)])
    assert [row[3][1] for row in seen] == pytest.approx([0.999] * 4 + [0.4995] * 4)


def test_each_optimizer_may_have_its_own_learning_rate_schedule(tmp_path: Path) -> None:
    first = ValueUpdaterHook("lr", TO_ZERO, groups=["first"], by_epoch=False)
    policy = {"type": "wsd", "to": 0.0, "decay_ratio": 0.5}
    last = ValueUpdaterHook(
        "lr", policy, groups=["last"], by_epoch=False, warmup="linear", warmup_iters=2, name="last"
    )
    seen = used(tmp_path, first, last)
    assert [row[0] for row in seen] == pytest.approx([0.1 * (1 - index / 8) for index in range(8)])
    rates = [0.1, 0.55, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert [row[1] for row in seen] == pytest.approx([0.4 * rate for rate in rates])


def test_two_schedules_of_one_value_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        used(tmp_path, ValueUpdaterHook("lr", TO_ZERO), CosineAnnealingLrUpdaterHook(min_lr=0.0))


@pytest.mark.parametrize(
    ("value", "nearest"), [("weight_decy", "weight_decay"), ("betas", "betas[0]")]
)
def test_a_value_that_the_optimizer_lacks_is_an_error_before_training(
    value: str, nearest: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        used(tmp_path, ValueUpdaterHook(value, TO_ZERO, groups=["first"]))
    assert caught.value.parameter == "value"
    assert caught.value.suggestion.nearest == nearest


def test_an_unknown_policy_is_an_error_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        ValueUpdaterHook("lr", {"type": "cosin", "to": 0.0})
    assert caught.value.suggestion.nearest == "cosine"


@pytest.mark.parametrize(
    ("policy", "parameter"),
    [
        ({"type": "one_cycle", "to": 0.1, "pct_start": 2.0}, "pct_start"),
        ({"type": "cyclic", "target_ratio": 2.0, "cyclic_times": 0}, "cyclic_times"),
        ({"type": "poly"}, "to"),
        ({"type": "poly", "to": 0.1, "pwoer": 2.0}, "pwoer"),
    ],
)
def test_an_error_of_a_policy_names_the_hook_and_the_parameter(
    policy: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ValueUpdaterHook("lr", policy)
    assert (caught.value.component, caught.value.parameter) == ("ValueUpdaterHook", parameter)
    assert caught.value.path[0] == "policy"


def test_a_policy_that_does_not_fit_the_run_is_an_error_of_the_hook(tmp_path: Path) -> None:
    policy = {"type": "one_cycle", "to": 0.1, "total_steps": 5}
    with pytest.raises(ConfigError) as caught:
        used(tmp_path, ValueUpdaterHook("lr", policy, by_epoch=False))
    assert (caught.value.component, caught.value.parameter) == ("ValueUpdaterHook", "total_steps")


def test_the_first_beta_has_only_one_schedule(tmp_path: Path) -> None:
    beta = ValueUpdaterHook("betas[0]", TO_ZERO, groups=["first"])
    momentum = CosineAnnealingMomentumUpdaterHook(min_momentum=0.5, groups=["first"])
    with pytest.raises(ConfigError):
        used(tmp_path, beta, momentum)


class Weighted(nn.CrossEntropyLoss):
    alpha = 2.0

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.alpha * super().forward(predictions, targets)


def test_the_weight_of_a_loss_is_scheduled(tmp_path: Path) -> None:
    loss_fn = Weighted()
    seen: list[float] = []
    hook = ValueUpdaterHook("loss_fn.alpha", TO_ZERO, by_epoch=False)
    note = LambdaHook(after_forward=lambda: seen.append(loss_fn.alpha))
    make_runner(tmp_path, hook, note, loss_fn=loss_fn).train()
    assert seen == pytest.approx([2.0 * (1 - index / 8) for index in range(8)])


def test_groups_without_weight_decay_stay_without_it(tmp_path: Path) -> None:
    model = small_model()
    groups = [
        {"params": [model[0].weight], "weight_decay": 0.5},
        {"params": [model[0].bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups)
    hook = ValueUpdaterHook("weight_decay", {"type": "linear", "to": 0.9}, by_epoch=False)
    make_runner(tmp_path, hook, model=model, optimizer=optimizer).train()
    assert optimizer.param_groups[0]["weight_decay"] == pytest.approx(0.85)
    assert optimizer.param_groups[1]["weight_decay"] == 0.0
