"""`hookline lr`: the schedule of a run without training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from hookline.cli.lr import schedule_of
from hookline.cli.main import main
from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.runner import Runner
from tests.cli.helpers import error_of, write_config

SCHEDULE = """\
optimizer: {type: SGD, lr: 0.1, momentum: 0.9}
lr_config: {policy: CosineAnnealing, min_lr: 0.0, by_epoch: false, warmup: linear, warmup_iters: 3}
momentum_config: {policy: OneCycle}
"""


class RateRecorder(BaseHook):
    """Records the learning rates and momenta of a real run."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.momenta: list[float] = []

    def after_backward(self, optimizer: torch.optim.Optimizer) -> None:
        self.rates.append(optimizer.param_groups[0]["lr"])
        self.momenta.append(optimizer.param_groups[0]["momentum"])


def train_and_record(config: str, *overrides: str) -> RateRecorder:
    runner = Runner.from_config(config, overrides)
    recorder = RateRecorder()
    runner.register_hook(recorder)
    runner.train()
    return recorder


@pytest.mark.parametrize(
    "schedule",
    [
        SCHEDULE,
        "optimizer: {type: SGD, lr: 0.1, momentum: 0.9}\nscheduler: [{type: ExponentialLR, gamma: 0.5}, "
        "{type: LinearLR, total_iters: 4, by_epoch: false}]\n",
    ],
)
def test_the_schedule_shown_is_the_one_that_training_uses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schedule: str
) -> None:
    config = write_config(tmp_path, schedule)
    assert main(["lr", config, "training.epochs=3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "run").exists()
    used = train_and_record(config, "training.epochs=3")
    assert shown["lr"][""] == used.rates
    assert shown["momentum"][""] == used.momenta
    assert len(used.rates) == 15


def test_the_schedule_is_drawn_in_the_terminal_and_as_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "new" / "lr.png"
    assert main(["lr", write_config(tmp_path, SCHEDULE), "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "●" in out
    assert "highest" in out
    assert "0.01" in out  # the start of the warm-up
    assert f"saved {picture}" in out
    with Image.open(picture) as image:
        assert image.size[0] >= 600
        assert len(set(image.convert("L").tobytes())) > 10


def test_a_config_without_a_schedule_gets_an_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lr", write_config(tmp_path)]) == 0
    assert "lr_config: {policy: " in capsys.readouterr().out


def test_each_group_has_its_own_curve() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    optimizer = torch.optim.Adagrad(
        [{"params": model[0].parameters(), "lr": 1.0}, {"params": model[1].parameters()}], lr=0.1
    )
    hooks = [{"type": "ExpLrUpdaterHook", "gamma": 0.5}]
    runner = Runner(model, train_loader=[1, 2], optimizer=optimizer, max_epochs=2, hooks=hooks)
    assert schedule_of(runner) == {
        "lr": {"group 0": [1.0, 1.0, 0.5, 0.5], "group 1": [0.1, 0.1, 0.05, 0.05]}
    }


def test_with_accumulation_a_scheduler_is_shown_as_it_is_stepped(tmp_path: Path) -> None:
    config = write_config(
        tmp_path,
        "optimizer: {type: SGD, lr: 0.1, momentum: 0.9}\n"
        "scheduler: {type: ExponentialLR, gamma: 0.5}\n",
    )
    hooks = "hooks=[LRSchedulerHook, {type: GradientCumulativeOptimizerHook, cumulative_iters: 2}]"
    changes = ["training.epochs=2", hooks]
    rates = schedule_of(Runner.from_config(config, changes))["lr"][""]
    used = train_and_record(config, *changes).rates
    assert len(rates) == 10  # two epochs of five iterations, with groups of 2, 2 and 1
    assert rates == [
        rate for rate, count in zip(used, (2, 2, 1) * 2, strict=True) for _ in range(count)
    ]


def test_a_loader_without_a_length_has_no_schedule() -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    runner = Runner(model, train_loader=iter([1]), optimizer=optimizer, max_iters=2)
    with pytest.raises(HooklineError):
        schedule_of(runner)


def test_an_unknown_policy_gets_a_suggestion(tmp_path: Path) -> None:
    config = write_config(tmp_path, "lr_config: {policy: cosine_anealing, min_lr: 0.0}\n")
    assert error_of("lr", config).suggestion.nearest == "CosineAnnealing"


def test_a_value_that_no_group_has_is_reported_with_its_line(tmp_path: Path) -> None:
    hooks = "  - {type: ValueUpdaterHook, value: weight_decays, policy: fixed}\n"
    config = write_config(tmp_path, hooks)
    problem = error_of("lr", config).problems[0]
    assert (problem.file, problem.component) == (config, "ValueUpdaterHook")
    assert problem.suggestion.nearest == "weight_decay"


def test_every_scheduled_value_is_drawn(tmp_path: Path) -> None:
    hooks = "  - {type: ValueUpdaterHook, value: weight_decay, policy: {type: linear, to: 0.0}}\n"
    config = write_config(tmp_path, hooks)
    overrides = ["optimizer.type=AdamW", "optimizer.weight_decay=0.5", "training.epochs=2"]
    values = schedule_of(Runner.from_config(config, overrides))["weight_decay"][""]
    assert values[0] == 0.5
    assert values[-1] == 0.25


def test_each_group_of_a_config_is_drawn_with_its_policy(tmp_path: Path) -> None:
    schedule = """\
optimizer:
  first: {type: SGD, lr: 0.1, params: "*weight"}
  rest: {type: AdamW, lr: 0.2}
lr_config:
  first: {policy: step, step: 1, gamma: 0.5}
  rest: {policy: poly, min_lr: 0.1}
"""
    runner = Runner.from_config(write_config(tmp_path, schedule), ["training.epochs=2"])
    rates = schedule_of(runner)["lr"]
    assert (rates["first"][0], rates["first"][-1]) == (0.1, 0.05)
    assert (rates["rest"][0], rates["rest"][-1]) == (0.2, pytest.approx(0.15))


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "poly", "to": 0.0},
        {"type": "one_cycle", "to": 0.4},
        {"type": "cyclic", "target_ratio": [3.0, 0.5]},
        {"type": "flat_cosine", "to": 0.0, "start_percent": 0.2},
    ],
)
def test_any_value_is_drawn_on_any_policy(policy: dict[str, object]) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.3)
    hook = {"type": "ValueUpdaterHook", "value": "weight_decay", "policy": policy}
    hooks = [{**hook, "by_epoch": False}]
    runner = Runner(model, train_loader=[1] * 5, optimizer=optimizer, max_epochs=2, hooks=hooks)
    values = schedule_of(runner)["weight_decay"][""]
    assert len(values) == 10
    assert len(set(values)) > 3
