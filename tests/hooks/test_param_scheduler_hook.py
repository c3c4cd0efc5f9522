"""Stepping of scheduler objects, and the learning rate in the log."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from hookline import ConfigError, HooklineError, Runner
from hookline.engine import BaseHook
from hookline.hooks import (
    GradientCumulativeOptimizerHook,
    LRSchedulerHook,
    ParamSchedulerHook,
)
from tests.helpers import batches, small_model
from tests.problems import logged, raises_problem

STATEFUL = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.5),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.5, 40),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o), lr_scheduler.StepLR(o, 2)], [3]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(
        o, factor=0.5, patience=0, threshold=0.5
    ),
    "several": lambda o: [
        lr_scheduler.LinearLR(o, 0.1, 1.0, 3),
        lr_scheduler.ExponentialLR(o, 0.9),
    ],
}


class Rates(BaseHook):
    def __init__(self) -> None:
        self.seen: list[float] = []

    def after_backward(self, optimizer):
        self.seen.append(optimizer.param_groups[0]["lr"])


def run(folder, make, *hooks, lr=0.1, length=3, **parts) -> tuple[Runner, list[float]]:
    model, rates = small_model(), Rates()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    runner = Runner(model, train_loader=batches(length), val_loader=batches(1), optimizer=optimizer, scheduler=make(optimizer),
                    loss_fn=nn.CrossEntropyLoss(), work_dir=folder, hooks=[rates, *hooks], **{"max_epochs": 3, **parts})  # fmt: skip
    runner.train()
    return runner, rates.seen


def test_a_scheduler_is_stepped_after_each_epoch_or_each_iteration(tmp_path):
    _, by_epoch = run(tmp_path, lambda o: lr_scheduler.ExponentialLR(o, 0.5))
    assert by_epoch == [0.1] * 3 + [0.05] * 3 + [0.025] * 3
    _, by_iter = run(
        tmp_path,
        lambda o: lr_scheduler.ExponentialLR(o, 0.5),
        ParamSchedulerHook(by_epoch=False),
        max_epochs=1,
    )
    assert by_iter == [0.1, 0.05, 0.025]


def test_with_accumulation_a_scheduler_counts_optimizer_steps(tmp_path):
    runner, rates = run(
        tmp_path,
        lambda o: lr_scheduler.ExponentialLR(o, 0.5),
        ParamSchedulerHook(by_epoch=False),
        GradientCumulativeOptimizerHook(cumulative_iters=2),
        length=6,
        max_epochs=1,
    )
    assert runner.optimizer_steps == runner.scheduler.last_epoch == 3
    assert rates == [0.1, 0.05, 0.025]


@pytest.mark.parametrize("hook", [ParamSchedulerHook(by_epoch=False), LRSchedulerHook()])
def test_a_schedule_that_accumulation_cuts_short_is_announced(tmp_path, caplog, hook):
    def warned(total, **parts):
        caplog.clear()
        runner, _ = run(
            tmp_path,
            lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=total),
            type(hook)(**vars_of(hook)),
            GradientCumulativeOptimizerHook(cumulative_iters=4),
            length=6,
            **parts,
        )
        return runner, [text for text in caplog.messages if "total_steps" in text]

    runner, (warning,) = warned(18)  # the number of iterations
    assert runner.optimizer_steps == runner.scheduler.last_epoch == 6  # 4 + 2 batches an epoch
    assert "is stepped only 6 times" in warning
    assert warned(6)[1] == []
    _, (warning,) = warned(7, max_epochs=None, max_iters=15)
    assert "is stepped only 5 times" in warning  # 4 + 2, 4 + 2 and 3 batches


def test_one_cycle_stepped_once_an_epoch_is_refused(tmp_path):
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=9))
    assert caught.value.parameter == "by_epoch"
    run(tmp_path, lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=3))


def test_lists_and_dicts_of_lists_are_stepped_and_each_may_have_its_own_unit(tmp_path):
    def two(optimizer):
        fast = lr_scheduler.ExponentialLR(optimizer, 0.5)
        fast.by_epoch = False
        return {"one": [fast, lr_scheduler.ExponentialLR(optimizer, 0.1)]}

    _, rates = run(tmp_path, two, length=2, max_epochs=2)
    assert rates == pytest.approx([0.1, 0.05, 0.0025, 0.00125])


def test_reduce_on_plateau_follows_the_monitored_metric(tmp_path):
    class Script(BaseHook):
        def after_val_epoch(self, runner):
            runner.metrics["made_up"] = [1.0, 1.0, 0.5, 0.5, 9.0][runner.epoch]

    def make(optimizer):
        return lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0)

    Script.priority = "LOWEST"  # the nearest to the validation: before those that read its results
    runner, rates = run(
        tmp_path, make, Script(), ParamSchedulerHook(monitor="made_up"), length=1, max_epochs=4
    )
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01])
    before = runner.optimizer.param_groups[0]["lr"]
    runner.validate()
    assert runner.optimizer.param_groups[0]["lr"] == before
    with pytest.raises(HooklineError) as caught:
        run(tmp_path / "other", make, Script(), ParamSchedulerHook(monitor="never"))
    assert (caught.value.component, caught.value.parameter) == ("ParamSchedulerHook", "monitor")


def test_a_misspelled_metric_is_refused_before_training(tmp_path):
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, STATEFUL["ReduceLROnPlateau"], ParamSchedulerHook(monitor="val_lss"))
    assert (caught.value.component, caught.value.parameter) == ("ParamSchedulerHook", "monitor")
    assert caught.value.suggestion.nearest == "val_loss"


@pytest.mark.parametrize("order", ["nested", "flat"])
@pytest.mark.parametrize(
    "hook",
    [ParamSchedulerHook(by_epoch=False), ParamSchedulerHook(by_epoch=True), LRSchedulerHook()],
)
def test_the_logged_rate_is_the_one_that_the_step_used(tmp_path, order, hook):
    logger = {"type": "LoggerHook", "interval": 2, "ignore_last": False}
    _, rates = run(
        tmp_path,
        lambda o: lr_scheduler.ExponentialLR(o, 0.5),
        type(hook)(**vars_of(hook)),
        logger,
        hook_order=order,
    )
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    logged = {
        line["iter"]: line["lr"]
        for line in lines
        if line.get("mode", "train") == "train" and "lr" in line
    }
    assert len(logged) == 6
    assert logged == {number: pytest.approx(rates[number - 1]) for number in logged}


def vars_of(hook: BaseHook) -> dict[str, object]:
    return {"by_epoch": hook.by_epoch} if isinstance(hook, ParamSchedulerHook) else {}


@pytest.mark.parametrize(
    "name, by_epoch",
    [
        (name, by_epoch)
        for name in STATEFUL
        for by_epoch in (True, False)
        if (name, by_epoch) != ("OneCycleLR", True)
    ],
)
def test_resumed_in_the_middle_a_scheduled_run_ends_bit_identical(tmp_path, name, by_epoch):
    class StopAt(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter + 1 == 5:
                runner.request_save()
                runner.request_stop("test")

    def go(folder, *more, **parts):
        return run(
            folder,
            STATEFUL[name],
            ParamSchedulerHook(by_epoch=by_epoch),
            *more,
            max_epochs=6,
            **parts,
        )

    straight, rates = go(tmp_path / "straight")
    go(tmp_path / "cut", StopAt())
    resumed, rest = go(tmp_path / "cut", resume="auto")
    assert rest == rates[5:]
    for one, two in zip(straight.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, two)


# LRSchedulerHook


def test_lr_scheduler_hook_steps_every_iteration_and_records_the_representative_group(tmp_path):
    model, seen = small_model(), []

    class Look(BaseHook):
        priority = "HIGHEST"

        def after_train_iter(self, runner):
            seen.append(runner.events.latest()["lr"])

    optimizer = torch.optim.SGD(
        [
            {"params": [model[0].weight], "lr": 9.0},
            {"params": [model[0].bias, *model[2].parameters()]},
        ],
        lr=0.1,
    )
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    hooks = [LRSchedulerHook(optimizer, scheduler), {"type": "LoggerHook", "interval": 1}, Look()]
    runner = Runner(
        model,
        train_loader=batches(3),
        optimizer=optimizer,
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1,
        work_dir=tmp_path,
        hooks=hooks,
    )
    runner.train()
    assert seen == [0.1, 0.05, 0.025]
    assert runner.scheduler is scheduler  # so that its state is in the checkpoint


def test_with_accumulation_lr_scheduler_hook_counts_optimizer_steps(tmp_path):
    runner, rates = run(
        tmp_path,
        lambda o: lr_scheduler.ExponentialLR(o, 0.5),
        LRSchedulerHook(),
        GradientCumulativeOptimizerHook(cumulative_iters=2),
        length=5,
        max_epochs=1,
    )
    assert runner.optimizer_steps == runner.scheduler.last_epoch == 3
    assert rates == [0.1, 0.05, 0.025]


def test_lr_scheduler_hook_builds_a_scheduler_from_a_config_and_resumes(tmp_path):
    hook = {"type": "LRSchedulerHook", "scheduler": {"type": "ExponentialLR", "gamma": 0.5}}
    _, rates = run(tmp_path, lambda o: None, hook, length=2, max_epochs=1)
    _, rest = run(tmp_path, lambda o: None, hook, length=2, max_epochs=2, resume="auto")
    assert rates + rest == [0.1, 0.05, 0.025, 0.0125]


def test_a_second_hook_that_steps_the_schedulers_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="steps the schedulers too") as caught:
        run(tmp_path, lambda o: lr_scheduler.ConstantLR(o), ParamSchedulerHook(), LRSchedulerHook())
    assert caught.value.component in ("ParamSchedulerHook", "LRSchedulerHook")


def test_lr_scheduler_hook_needs_a_scheduler(tmp_path):
    with raises_problem(component="LRSchedulerHook", parameter="scheduler", value=None):
        run(tmp_path, lambda o: None, LRSchedulerHook())


def test_a_scheduler_that_is_stepped_too_seldom_is_reported(tmp_path, caplog):
    run(tmp_path / "epochs", lambda o: lr_scheduler.CosineAnnealingLR(o, 9))
    assert len(logged(caplog, "T_max=9", "by_epoch=False")) == 1
    caplog.clear()
    step = ParamSchedulerHook(by_epoch=False)
    run(tmp_path / "steps", lambda o: lr_scheduler.CosineAnnealingLR(o, 9), step)
    assert not logged(caplog, "T_max")
