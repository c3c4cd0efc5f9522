"""`hookline lr` and `hookline lr-find`."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hookline.cli.charts import text_chart
from hookline.cli.lr import schedule_of
from hookline.cli.lr_find import find_lr
from hookline.cli.main import main
from hookline.engine import BaseHook, BaseRunner
from hookline.runner import Runner
from tests.cli.helpers import write_config

SCHEDULE = """\
optimizer: {type: SGD, lr: 0.1, momentum: 0.9}
lr_config: {policy: CosineAnnealing, min_lr: 0.0, by_epoch: false, warmup: linear, warmup_iters: 3}
momentum_config: {policy: OneCycle}
"""


class Used(BaseHook):
    """The learning rates and momenta of a real run."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.momenta: list[float] = []

    def after_backward(self, optimizer: torch.optim.Optimizer) -> None:
        self.rates.append(optimizer.param_groups[0]["lr"])
        self.momenta.append(optimizer.param_groups[0]["momentum"])


def train_and_watch(config: str, *overrides: str) -> Used:
    runner, used = Runner.from_config(config, overrides), Used()
    runner.register_hook(used)
    runner.train()
    return used


@pytest.mark.parametrize(
    "schedule",
    [
        SCHEDULE,
        "optimizer: {type: SGD, lr: 0.1, momentum: 0.9}\nscheduler: [{type: ExponentialLR, gamma: 0.5}, "
        "{type: LinearLR, total_iters: 4, by_epoch: false}]\n",
    ],
)
def test_the_schedule_shown_is_the_one_that_training_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str], schedule: str) -> None:
    config = write_config(tmp_path, schedule)
    assert main(["lr", config, "training.epochs=3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "run").exists()
    used = train_and_watch(config, "training.epochs=3")
    assert shown["lr"][""] == used.rates
    assert shown["momentum"][""] == used.momenta
    assert len(used.rates) == 15


def test_the_schedule_is_drawn_in_the_terminal_and_as_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "new" / "lr.png"
    assert main(["lr", write_config(tmp_path, SCHEDULE), "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "•" in out
    assert "highest" in out
    assert "0.01" in out  # where the warm-up starts
    assert f"saved {picture}" in out
    with Image.open(picture) as image:
        assert image.size[0] >= 600
        assert len(set(image.convert("L").tobytes())) > 10


def test_a_config_without_a_schedule_says_how_to_give_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lr", write_config(tmp_path)]) == 0
    assert "no schedule: give lr_config" in capsys.readouterr().out


def test_each_group_has_its_own_curve() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    optimizer = torch.optim.Adagrad([{"params": model[0].parameters(), "lr": 1.0}, {"params": model[1].parameters()}], lr=0.1)
    hooks = [{"type": "ExpLrUpdaterHook", "gamma": 0.5}]
    runner = Runner(model, train_loader=[1, 2], optimizer=optimizer, max_epochs=2, hooks=hooks)
    assert schedule_of(runner) == {"lr": {"group 0": [1.0, 1.0, 0.5, 0.5], "group 1": [0.1, 0.1, 0.05, 0.05]}}


def test_a_mistake_in_the_config_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lr", write_config(tmp_path, "lr_config: {policy: cosine_anealing, min_lr: 0.0}\n")]) == 2
    assert "unknown policy 'cosine_anealing'; did you mean 'CosineAnnealing'" in capsys.readouterr().err


# lr-find


def state_of(runner: BaseRunner) -> list[object]:
    model = {name: value.clone() for name, value in runner.model.state_dict().items()}
    optimizer = runner.optimizer.state_dict()  # type: ignore[union-attr]
    random_state = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()]  # type: ignore[index]
    modes = [module.training for module in runner.model.modules()]
    gradients = [param.grad for param in runner.model.parameters()]
    return [model, optimizer["param_groups"], optimizer["state"], random_state, modes, gradients]


def same(one: object, two: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(two, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


@pytest.mark.parametrize("trained", [False, True])
def test_a_range_test_leaves_model_optimizer_and_random_numbers_as_they_were(tmp_path: Path, trained: bool) -> None:
    runner = Runner.from_config(write_config(tmp_path, "optimizer: {type: AdamW, lr: 1e-3}\n"))
    if trained:
        runner.train()
    runner.model.eval()
    before = state_of(runner)
    before[2] = json.loads(json.dumps(before[2], default=lambda tensor: tensor.tolist()))
    result = find_lr(runner, iters=30)
    after = state_of(runner)
    after[2] = json.loads(json.dumps(after[2], default=lambda tensor: tensor.tolist()))
    assert len(result.rates) >= 10
    assert same(before, after)


def test_a_range_test_suggests_a_rate_that_works_and_draws_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "find.png"
    config = write_config(tmp_path, "optimizer: {type: AdamW, lr: 1e-3}\n")
    assert main(["lr-find", config, "--plot", str(picture), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert 1e-4 < result["suggestion"] < 0.3
    assert result["losses"][-1] > min(result["losses"])
    assert result["rates"] == sorted(result["rates"])
    assert picture.stat().st_size > 5000
    assert main(["lr-find", config, "--iters", "40"]) == 0
    assert "suggested learning rate" in capsys.readouterr().out
    assert not (tmp_path / "run").exists()


def test_a_range_that_makes_no_sense_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lr-find", write_config(tmp_path), "--start", "1", "--end", "0.1"]) == 2
    assert "0 < start < end" in capsys.readouterr().err


def test_charts_show_their_extremes_and_survive_short_and_flat_curves() -> None:
    wave = [math.sin(index / 20) for index in range(500)]
    lines = text_chart(wave, "1", "500")
    assert (lines[0].split()[0], lines[-3].split()[0]) == ("1", "-1")
    assert {len(line) for line in text_chart([1.0], "1", "1")} != set()
    assert sum("•" in line for line in text_chart([2.0, 2.0, 2.0], "1", "3")) == 1
