from __future__ import annotations

import os

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import BaseHook, Runner, make_loader
from hookline.rng import deterministic_algorithms

Settings = tuple[bool, bool, bool, bool]


def settings() -> Settings:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.deterministic,
        torch.backends.cudnn.benchmark,
    )


class SettingsHook(BaseHook):
    """Records the settings at the end of each run."""

    def __init__(self) -> None:
        self.seen: list[Settings] = []

    def after_run(self, runner) -> None:
        self.seen.append(settings())


@pytest.fixture
def user_settings(monkeypatch):
    """Settings that differ from the defaults of torch and from those of a deterministic run."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield settings()
    torch.use_deterministic_algorithms(False)


def test_deterministic_algorithms_hold_inside_and_end_with_an_error_too(user_settings):
    inside = []

    def fail() -> None:
        inside.append((*settings(), os.environ["CUBLAS_WORKSPACE_CONFIG"]))
        raise KeyError

    with pytest.raises(KeyError), deterministic_algorithms(True):
        fail()
    assert inside == [(True, False, True, False, ":4096:8")]
    assert settings() == user_settings


def test_the_users_workspace_of_cublas_is_kept(monkeypatch, user_settings):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    with deterministic_algorithms(True):
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"


def test_the_users_settings_are_kept_in_a_run_without_the_switch(user_settings):
    with deterministic_algorithms(False):
        assert settings() == user_settings
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_runner_uses_them_while_it_trains_validates_and_tests(
    tmp_path, user_settings, deterministic
):
    hook = SettingsHook()
    data = TensorDataset(torch.randn(4, 2), torch.randint(2, (4,)))
    model = nn.Linear(2, 2)
    runner = Runner(
        model,
        train_loader=make_loader(data, 2),
        val_loader=make_loader(data, 2),
        test_loader=make_loader(data, 2),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        max_iters=1,
        work_dir=tmp_path,
        device="cpu",
        deterministic=deterministic,
        hooks=[hook],
    )
    for act in (runner.train, runner.validate, runner.test):
        act()
        assert settings() == user_settings
    expected = (True, False, True, False) if deterministic else user_settings
    assert hook.seen == [expected] * 3
