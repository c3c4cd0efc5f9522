"""What a report holds of the learning rates."""

from __future__ import annotations

import json

import torch
from torch import nn
from torch.optim import lr_scheduler

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import LoggerHook, LRSchedulerHook
from tests.helpers import batches, small_model


def logged(folder, groups, *hooks, schedule=None, **parts):
    """The learning rates in each row of a run's log; `groups` are options of the parameters, one after the other."""
    model = small_model()
    optimizer = torch.optim.SGD(
        [{"params": [p], **group} for p, group in zip(model.parameters(), groups, strict=False)],
        lr=0.1,
    )
    Runner(
        model, train_loader=batches(3), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_epochs=1, work_dir=folder,
        hooks=[LoggerHook(interval=1), *hooks], scheduler=schedule and schedule(optimizer), **parts,
    ).train()  # fmt: skip
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name.startswith("lr")} for row in rows]


def test_groups_with_a_rate_of_their_own_are_recorded_by_name_or_number(tmp_path):
    groups = [{}, {}, {"lr": 0.5, "name": "head"}, {"lr": 0.2}]
    assert logged(tmp_path, groups) == [{"lr": 0.1, "lr/head": 0.5, "lr/3": 0.2}] * 3


def test_groups_that_share_a_rate_are_recorded_once(tmp_path):
    assert logged(tmp_path / "all", [{}, {"weight_decay": 0.1}]) == [{"lr": 0.1}] * 3
    assert (
        logged(tmp_path / "two", [{}, {"lr": 0.2}, {}, {"lr": 0.2}])
        == [{"lr": 0.1, "lr/1": 0.2}] * 3
    )


def test_a_group_that_comes_to_the_rate_of_another_does_not_keep_its_last_one(tmp_path):
    class Meets(BaseHook):
        def before_train_iter(self, runner):
            if runner.iter == 1:
                runner.optimizer.param_groups[1]["lr"] = 0.1

    assert logged(tmp_path, [{}, {"lr": 0.2}], Meets()) == [
        {"lr": 0.1, "lr/1": 0.2},
        *[{"lr": 0.1, "lr/1": 0.1}] * 2,
    ]


def test_schedulers_leave_in_the_log_the_rates_that_all_groups_were_stepped_with(tmp_path):
    groups, used = (
        [{}, {"lr": 0.4}],
        [{"lr": 0.1, "lr/1": 0.4}, {"lr": 0.05, "lr/1": 0.2}, {"lr": 0.025, "lr/1": 0.1}],
    )

    def halve(optimizer):
        scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
        scheduler.by_epoch = False
        return scheduler

    assert logged(tmp_path / "param", groups, schedule=halve) == used
    assert logged(tmp_path / "lr", groups, LRSchedulerHook(), schedule=halve) == used
