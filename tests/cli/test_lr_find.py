"""`hookline lr-find`: the learning rate range test."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from hookline.cli.lr_find import find_lr
from hookline.cli.main import main
from hookline.engine import BaseRunner
from hookline.errors import HooklineError
from hookline.runner import Runner
from tests.cli.helpers import error_of, write_config


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
def test_a_range_test_restores_model_optimizer_and_random_numbers(
    tmp_path: Path, trained: bool
) -> None:
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


def test_a_range_test_suggests_a_rate_that_works_and_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_an_empty_range_is_an_error(tmp_path: Path) -> None:
    error_of("lr-find", write_config(tmp_path), "--start", "1", "--end", "0.1")


def test_an_optimizer_that_needs_a_closure_is_an_error(tmp_path: Path) -> None:
    config = write_config(tmp_path, "optimizer: {type: LBFGS}\n")
    assert error_of("lr-find", config).parameter == "optimizer"


def test_a_runner_without_training_data_is_an_error() -> None:
    model = torch.nn.Linear(2, 2)
    with pytest.raises(HooklineError):
        find_lr(Runner(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1)))
