"""Momentum policies, compared with tables computed without them."""

from __future__ import annotations

import pytest
import torch

from hookline import ConfigError
from hookline.engine import BaseHook
from tests.helpers import batches, make_runner, small_model
from tests.hooks.schedule_tables import EPOCHS, ITERS, LENGTH, MOMENTA, by_iteration, warmed


class Momenta(BaseHook):
    """Record the momentum of each optimizer step."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def after_backward(self, optimizer):
        group = optimizer.param_groups[0]
        self.seen.append(group["betas"][0] if "betas" in group else group["momentum"])


def momenta_of(tmp_path, kind, hook) -> list[float]:
    model, momenta = small_model(), Momenta()
    optimizer = {
        "SGD": lambda: torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9),
        "Adam": lambda: torch.optim.Adam(model.parameters(), lr=0.001, betas=(0.9, 0.99)),
    }[kind]()
    make_runner(
        tmp_path,
        hook,
        momenta,
        model=model,
        optimizer=optimizer,
        train_loader=batches(LENGTH),
        max_epochs=EPOCHS,
    ).train()
    if kind == "Adam":
        assert optimizer.param_groups[0]["betas"][1] == 0.99
    return momenta.seen


@pytest.mark.parametrize("by_epoch", [True, False], ids=["by_epoch", "by_iteration"])
@pytest.mark.parametrize(
    ("warmup", "length"), [(None, 0), ("constant", 5), ("linear", 5), ("exp", 7)]
)
@pytest.mark.parametrize("name", MOMENTA)
def test_each_policy_gives_the_momenta_of_its_table(tmp_path, name, warmup, length, by_epoch):
    policy, parameters, table = MOMENTA[name]
    options = (
        {} if warmup is None else {"warmup": warmup, "warmup_iters": length, "warmup_ratio": 0.95}
    )
    hook = {"type": f"{policy}MomentumUpdaterHook", "by_epoch": by_epoch, **parameters, **options}
    expected = warmed(by_iteration(table, by_epoch), warmup, length, 0.95, divide=True)
    got = momenta_of(tmp_path, "SGD", hook)
    assert len(got) == ITERS
    assert got == pytest.approx(expected, abs=1e-9, rel=0)


def test_adams_first_beta_is_its_momentum(tmp_path):
    got = momenta_of(tmp_path, "Adam", {"type": "StepMomentumUpdaterHook", "step": 6, "gamma": 0.5})
    assert got == [0.9] * 12 + [0.45] * 12


def test_an_optimizer_without_momentum_is_refused(tmp_path):
    model = small_model()
    hook = {"type": "StepMomentumUpdaterHook", "step": 1}
    optimizer = torch.optim.Adagrad(model.parameters())
    runner = make_runner(tmp_path, hook, model=model, optimizer=optimizer)
    with pytest.raises(ConfigError, match="neither 'momentum' nor 'betas'") as caught:
        runner.train()
    assert caught.value.component == "StepMomentumUpdaterHook"


def test_only_the_chosen_groups_need_a_momentum(tmp_path):
    model = small_model()
    optimizers = {
        "sgd": torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.8),
        "adagrad": torch.optim.Adagrad(model[2].parameters()),
    }
    hook = {"type": "StepMomentumUpdaterHook", "step": 1, "groups": ["sgd"]}
    make_runner(tmp_path, hook, model=model, optimizer=optimizers).train()
    assert optimizers["sgd"].param_groups[0]["momentum"] == 0.4
    hook = {"type": "OneCycleMomentumUpdaterHook", "groups": ["sgd"]}
    make_runner(tmp_path, hook, model=model, optimizer=optimizers).train()


def test_a_second_momentum_policy_is_refused(tmp_path):
    two = [{"type": "StepMomentumUpdaterHook", "step": 1}, {"type": "OneCycleMomentumUpdaterHook"}]
    with pytest.raises(ConfigError, match="OneCycleMomentumUpdaterHook sets the momentum"):
        make_runner(tmp_path, *two).train()


def test_a_momentum_policy_and_a_learning_rate_policy_go_together(tmp_path):
    momentum = {"type": "StepMomentumUpdaterHook", "step": 1}
    make_runner(tmp_path, momentum, {"type": "StepLrUpdaterHook", "step": 1}).train()


def test_a_warm_up_begins_at_the_momentum_divided_by_the_default_ratio(tmp_path):
    hook = {"type": "StepMomentumUpdaterHook", "step": 100, "warmup": "constant", "warmup_iters": 1}
    got = momenta_of(tmp_path, "SGD", hook)
    assert got[:2] == [pytest.approx(got[1] / 0.9), got[1]]
