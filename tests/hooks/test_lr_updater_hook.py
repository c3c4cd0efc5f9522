"""Learning rate policies, compared with tables computed without them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from hookline import ConfigError, Runner
from hookline.engine import HOOKS, BaseHook
from hookline.hooks import (
    CosineAnnealingLrUpdaterHook,
    LrUpdaterHook,
    OneCycleLrUpdaterHook,
    StepLrUpdaterHook,
    StopAtHook,
)
from tests.helpers import batches, make_runner, small_model
from tests.hooks.schedule_tables import (
    BASE,
    EPOCHS,
    ITERS,
    LENGTH,
    MOMENTA,
    RATES,
    by_iteration,
    warmed,
)

WARMUPS = [(None, 0), ("constant", 5), ("linear", 5), ("exp", 7), ("linear", ITERS + 3)]


class Rates(BaseHook):
    """Record the learning rates of each optimizer step."""

    def __init__(self) -> None:
        self.seen: list[list[float]] = []

    def after_backward(self, optimizer):
        self.seen.append([group["lr"] for group in optimizer.param_groups])


def rates_of(tmp_path, hook, **parts) -> list[float]:
    rates = Rates()
    make_runner(
        tmp_path, hook, rates, train_loader=batches(LENGTH), **{"max_epochs": EPOCHS, **parts}
    ).train()
    return [row[0] for row in rates.seen]


@pytest.mark.parametrize("by_epoch", [True, False], ids=["by_epoch", "by_iteration"])
@pytest.mark.parametrize(("warmup", "length"), WARMUPS)
@pytest.mark.parametrize("name", RATES)
def test_each_policy_gives_the_rates_of_its_table(tmp_path, name, warmup, length, by_epoch):
    policy, parameters, table = RATES[name]
    options = (
        {} if warmup is None else {"warmup": warmup, "warmup_iters": length, "warmup_ratio": 0.05}
    )
    hook = {"type": f"{policy}LrUpdaterHook", "by_epoch": by_epoch, **parameters, **options}
    expected = warmed(by_iteration(table, by_epoch), warmup, length, 0.05)
    got = rates_of(tmp_path, hook)
    assert len(got) == ITERS >= 12
    assert got == pytest.approx(expected, abs=1e-9, rel=0)


def test_a_cosine_matches_values_computed_by_hand(tmp_path):
    got = rates_of(tmp_path, CosineAnnealingLrUpdaterHook(min_lr=0.0))
    by_hand = [0.1, 0.09829629131, 0.09330127019, 0.08535533906, 0.075, 0.06294095226, 0.05, 0.03705904774, 0.025, 0.01464466094,
               0.00669872981, 0.00170370869]  # fmt: skip
    assert got[::LENGTH] == pytest.approx(by_hand, abs=1e-9)


def test_a_warm_up_by_epoch_counts_epochs(tmp_path):
    got = rates_of(
        tmp_path,
        {
            "type": "FixedLrUpdaterHook",
            "warmup": "linear",
            "warmup_iters": 3,
            "warmup_by_epoch": True,
        },
    )
    assert got == pytest.approx(warmed([BASE] * ITERS, "linear", 3 * LENGTH, 0.1), abs=1e-9)


def test_each_parameter_group_is_scheduled_from_its_own_rate(tmp_path):
    model, rates = small_model(), Rates()
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters(), "lr": 0.2}, {"params": model[2].parameters()}], lr=0.1
    )
    hook = StepLrUpdaterHook(step=[1], gamma=0.5)
    make_runner(
        tmp_path,
        hook,
        rates,
        model=model,
        optimizer=optimizer,
        train_loader=batches(2),
        max_epochs=2,
    ).train()
    assert rates.seen == [[0.2, 0.1]] * 2 + [[0.1, 0.05]] * 2


def test_a_group_added_during_the_run_is_scheduled_from_its_own_rate(tmp_path):
    rates, extra = Rates(), nn.Parameter(torch.zeros(2))

    class Add(BaseHook):
        def after_train_epoch(self, runner):
            if runner.epoch == 0:
                runner.optimizer.add_param_group({"params": [extra], "lr": 0.4})

    make_runner(
        tmp_path,
        StepLrUpdaterHook(step=[1, 2], gamma=0.5),
        rates,
        Add(),
        train_loader=batches(1),
        max_epochs=3,
    ).train()
    assert rates.seen == [[0.1], [0.05, 0.2], [0.025, 0.1]]


def test_one_cycle_takes_a_rate_for_each_group_and_each_optimizer(tmp_path):
    model = small_model()
    optimizer = torch.optim.SGD(
        [{"params": model[0].parameters()}, {"params": model[2].parameters()}], lr=0.1
    )
    hook, rates = OneCycleLrUpdaterHook([0.5, 1.0], div_factor=10), Rates()
    make_runner(
        tmp_path, hook, rates, model=model, optimizer=optimizer, train_loader=batches(2)
    ).train()
    assert rates.seen[0] == pytest.approx([0.05, 0.1])
    named = {
        "g": torch.optim.SGD(model[0].parameters()),
        "d": torch.optim.SGD(model[2].parameters()),
    }
    assert OneCycleLrUpdaterHook({"g": 0.5, "d": 5.0}, div_factor=5).initial_values(named) == [
        0.1,
        1.0,
    ]
    with pytest.raises(ConfigError) as caught:
        OneCycleLrUpdaterHook({"g": 0.5}).initial_values(named)
    assert (caught.value.parameter, caught.value.value) == ("max_lr", {"g": 0.5})


def test_each_group_may_have_its_own_policy(tmp_path):
    model = small_model()
    named = [
        {"params": model[0].parameters(), "name": "body"},
        {"params": model[2].parameters(), "name": "head"},
    ]
    hooks = [
        StepLrUpdaterHook(step=[1], gamma=0.5, groups=["body"]),
        OneCycleLrUpdaterHook(0.5, div_factor=10, groups=["head"]),
    ]
    rates = Rates()
    optimizer = torch.optim.SGD(named, lr=0.1)
    parts = {"model": model, "optimizer": optimizer, "train_loader": batches(2)}
    make_runner(tmp_path, *hooks, rates, **parts).train()
    assert [body for body, _ in rates.seen] == [0.1, 0.1, 0.05, 0.05]
    assert rates.seen[0][1] == pytest.approx(0.05)
    assert len({head for _, head in rates.seen}) == 4


def test_two_policies_of_one_group_are_refused(tmp_path):
    hooks = [StepLrUpdaterHook(step=1), StepLrUpdaterHook(step=2, groups=["0"])]
    with pytest.raises(ConfigError):
        make_runner(tmp_path, *hooks).train()


def test_several_optimizers_are_all_scheduled(tmp_path):
    class Gan(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 3), nn.Linear(6, 3)

        def train_step(self, batch, optimizer):
            inputs, targets = batch
            losses = []
            for name, net in (("one", self.one), ("two", self.two)):
                optimizer[name].zero_grad()
                losses.append(nn.functional.cross_entropy(net(inputs), targets))
                losses[-1].backward()
                optimizer[name].step()
            return {"loss": losses[0].detach() + losses[1].detach()}

    model, seen = Gan(), []
    optimizer = {
        "one": torch.optim.SGD(model.one.parameters(), lr=0.1),
        "two": torch.optim.Adam(model.two.parameters(), lr=0.01),
    }

    class Look(BaseHook):
        def after_forward(self, optimizer):
            seen.append([each.param_groups[0]["lr"] for each in optimizer.values()])

    before = [p.clone() for p in model.parameters()]
    hooks = [
        {"type": "StepLrUpdaterHook", "step": [1]},
        {"type": "LoggerHook", "interval": 1},
        Look(),
    ]
    runner = Runner(
        model,
        train_loader=batches(1),
        optimizer=optimizer,
        hooks=hooks,
        max_epochs=2,
        work_dir=tmp_path,
    )
    runner.train()
    assert seen == [[0.1, 0.01], pytest.approx([0.01, 0.001])]
    assert runner.events.latest()["lr_two"] == pytest.approx(0.001)
    assert all(
        not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)
    )


def test_a_custom_policy_implements_compute(tmp_path):
    class HalvingLrUpdaterHook(LrUpdaterHook):
        def compute(self, initial, progress, end):
            return initial / 2**progress

    rates = rates_of(tmp_path, HalvingLrUpdaterHook(), max_epochs=3)
    assert rates == [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]


def test_a_run_in_iterations_may_be_scheduled_by_epoch(tmp_path):
    got = rates_of(tmp_path, StepLrUpdaterHook(step=1, gamma=0.5), max_epochs=None, max_iters=5)
    assert got == [0.1, 0.1, 0.05, 0.05, 0.025]


class Longer(BaseHook):
    """Train on one more batch in each epoch, from 2 on."""

    def before_train_epoch(self, runner):
        runner.set_train_loader(batches(runner.epoch + 2))


@pytest.mark.parametrize(
    ("by_epoch", "length", "last"), [(False, {"max_epochs": 4}, 13 / 14), (True, {"max_iters": 9}, 2 / 3)]
)  # fmt: skip
@pytest.mark.parametrize("stop", [1, 2, 4, 7])
def test_a_schedule_follows_replaced_training_data_and_resumes_exactly(
    tmp_path, by_epoch, length, last, stop
):
    def train(folder, *hooks):
        model, rates = small_model(), Rates()
        schedule = CosineAnnealingLrUpdaterHook(min_lr=0.0, by_epoch=by_epoch)
        Runner(
            model,
            train_loader=batches(9),
            optimizer=torch.optim.SGD(model.parameters(), lr=BASE),
            loss_fn=nn.CrossEntropyLoss(),
            hooks=[schedule, Longer(), rates, *hooks],
            work_dir=tmp_path / folder,
            resume="auto",
            **length,
        ).train()
        return [row[0] for row in rates.seen]

    whole = train("whole")
    assert whole[-1] == pytest.approx(BASE * (1 + math.cos(math.pi * last)) / 2)
    assert train("cut", StopAtHook(iter=stop)) + train("cut") == whole


def test_a_second_policy_is_refused(tmp_path):
    runner = make_runner(tmp_path, StepLrUpdaterHook(step=1), {"type": "FixedLrUpdaterHook"})
    with pytest.raises(ConfigError, match="FixedLrUpdaterHook sets the learning rate") as caught:
        runner.train()
    assert caught.value.component == "StepLrUpdaterHook"


def test_a_policy_beside_a_scheduler_is_refused(tmp_path):
    runner = make_runner(tmp_path, StepLrUpdaterHook(step=1))
    runner.scheduler = torch.optim.lr_scheduler.ConstantLR(runner.optimizer)
    with pytest.raises(ConfigError, match="the scheduler sets the learning rate") as caught:
        runner.train()
    assert caught.value.component == "StepLrUpdaterHook"


@pytest.mark.parametrize(
    ("policy", "given", "parameter"),
    [
        ("CosineAnnealing", {}, "min_lr"),
        ("CosineAnnealing", {"min_lr": 0.0, "min_lr_ratio": 0.1}, "min_lr"),
        ("Step", {}, "step"),
        ("Step", {"step": 0}, "step"),
        ("Step", {"step": [5, 3]}, "step"),
        ("Step", {"step": []}, "step"),
        ("Fixed", {"warmup": "linear"}, "warmup_iters"),
        ("Fixed", {"warmup_iters": 3}, "warmup_iters"),
        ("Fixed", {"warmup": "lin", "warmup_iters": 3}, "warmup"),
        ("Fixed", {"warmup": "exp", "warmup_iters": 3, "warmup_ratio": 0}, "warmup_ratio"),
        ("CosineRestart", {"periods": [1, 2], "min_lr": 0.0}, "restart_weights"),
        ("CosineRestart", {"periods": [0], "min_lr": 0.0}, "periods"),
        ("FlatCosineAnnealing", {"start_percent": 2, "min_lr": 0.0}, "start_percent"),
        ("Cyclic", {"target_ratio": [1, 2, 3]}, "target_ratio"),
        ("Cyclic", {"step_ratio_up": 1.0}, "step_ratio_up"),
        ("Cyclic", {"cyclic_times": 0}, "cyclic_times"),
        ("Cyclic", {"gamma": 1.5}, "gamma"),
        ("OneCycle", {"max_lr": 0.1, "pct_start": 3}, "pct_start"),
    ],
)
def test_wrong_parameters_are_refused_when_the_hook_is_built(policy, given, parameter):
    name = f"{policy}LrUpdaterHook"
    with pytest.raises(ConfigError) as caught:
        HOOKS.build({"type": name, **given})
    assert (caught.value.component, caught.value.parameter) == (name, parameter)


@pytest.mark.parametrize(
    ("hook", "parameter"),
    [
        ({"type": "CosineRestartLrUpdaterHook", "periods": [3], "min_lr": 0.0}, "periods"),
        ({"type": "OneCycleLrUpdaterHook", "max_lr": 0.1, "total_steps": 3}, "total_steps"),
    ],
)
def test_a_schedule_shorter_than_the_run_is_refused_before_the_first_batch(
    tmp_path, hook, parameter
):
    with pytest.raises(ConfigError) as caught:
        rates_of(tmp_path, hook)
    assert (caught.value.component, caught.value.parameter) == (hook["type"], parameter)


@pytest.mark.parametrize(
    ("hook", "parameter"),
    [
        (CosineAnnealingLrUpdaterHook(min_lr=0.0, by_epoch=False), "by_epoch"),
        (
            StepLrUpdaterHook(step=1, warmup="linear", warmup_iters=1, warmup_by_epoch=True),
            "warmup_by_epoch",
        ),
    ],
)
def test_a_schedule_that_needs_a_length_refuses_a_loader_without_one(tmp_path, hook, parameter):
    class Unsized:
        def __iter__(self):
            return iter(batches(3))

    with pytest.raises(ConfigError) as caught:
        make_runner(tmp_path, hook, train_loader=Unsized()).train()
    assert (caught.value.component, caught.value.parameter) == (hook.name, parameter)


def test_an_edited_schedule_and_an_edited_rate_take_effect_on_resume(tmp_path):
    def run(hook, lr, max_epochs, **parts):
        model, rates = small_model(), Rates()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        hooks = [hook, rates]
        Runner(model, train_loader=batches(1), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_epochs=max_epochs,
               work_dir=tmp_path, hooks=hooks, **parts).train()  # fmt: skip
        return [row[0] for row in rates.seen]

    assert run(StepLrUpdaterHook(step=2, gamma=0.5), 0.1, 3) == [0.1, 0.1, 0.05]
    assert run(StepLrUpdaterHook(step=2, gamma=0.1), 0.2, 5, resume="auto") == pytest.approx(
        [0.02, 0.002]
    )


POLICIES = [
    (f"{kind}UpdaterHook", *policy[:2])
    for kind, table in (("Lr", RATES), ("Momentum", MOMENTA))
    for policy in table.values()
]


@pytest.mark.parametrize(
    ("kind", "policy", "parameters", "by_epoch"),
    [(*row, index % 3 == 0) for index, row in enumerate(POLICIES)],
)
def test_resumed_in_the_middle_of_a_policy_a_run_ends_bit_identical(
    tmp_path, kind, policy, parameters, by_epoch
):
    hook = {
        "type": f"{policy}{kind}",
        "by_epoch": by_epoch,
        "warmup": "exp",
        "warmup_iters": 9,
        "warmup_ratio": 0.95,
        **parameters,
    }

    class StopAt(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter + 1 == 7:
                runner.request_save()
                runner.request_stop("test")

    def run(folder, *more, **parts):
        model, rates = small_model(), Rates()
        optimizer = torch.optim.SGD(model.parameters(), lr=BASE, momentum=0.9)
        runner = Runner(model, train_loader=batches(LENGTH), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_epochs=EPOCHS,
                        work_dir=folder, hooks=[hook, rates, *more], **parts)  # fmt: skip
        runner.train()
        return (
            rates.seen,
            [p.detach().clone() for p in model.parameters()],
            optimizer.state_dict()["param_groups"],
        )

    straight = run(tmp_path / "straight")
    run(tmp_path / "cut", StopAt())
    resumed = run(tmp_path / "cut", resume="auto")
    assert straight[0][7:] == resumed[0]
    assert all(torch.equal(one, two) for one, two in zip(straight[1], resumed[1], strict=True))
    assert straight[2] == resumed[2]
