"""ActivationCheckpointHook: activations are recomputed, with the same result."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointWrapper,
    checkpoint_wrapper,
)

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import ActivationCheckpointHook, CheckpointHook, FreezeHook, StopAtHook
from tests.helpers import make_runner


class Counting(nn.Linear):
    calls = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(inputs)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.Dropout(0.5), nn.Sequential(Counting(8, 8)), nn.Linear(8, 3)
    )


def train(folder: Path, *hooks: Any, **options: Any) -> Any:
    runner = make_runner(folder, *hooks, model=network(), seed=1, **options)
    runner.train()
    return runner


def equal(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize("modules", ["Counting", ["2", "Dropout"], ["Counting", "2"]])
def test_weights_and_names_stay_the_same(tmp_path: Path, modules: Any) -> None:
    runner = train(tmp_path, ActivationCheckpointHook(modules))
    assert equal(runner.model, train(tmp_path).model)
    assert list(runner.model.state_dict()) == list(network().state_dict())
    counting = [each for each in runner.model.modules() if isinstance(each, Counting)]
    assert counting[0].calls == 16  # twice in each of eight iterations


def test_a_run_resumes_with_and_without_it(tmp_path: Path) -> None:
    save = CheckpointHook(save_best=False)
    train(tmp_path, ActivationCheckpointHook("Counting"), save, StopAtHook(iter=4))
    resumed = train(tmp_path, CheckpointHook(save_best=False), resume="auto")
    assert equal(resumed.model, train(tmp_path / "plain").model)


@pytest.mark.parametrize("saved_with", [[ActivationCheckpointHook("Linear")], []])
def test_frozen_parameters_have_the_same_names_with_and_without_it(
    tmp_path: Path, saved_with: list[BaseHook]
) -> None:
    class Freeze(BaseHook):
        """Freezes a parameter for good, without a trace in the state of a hook."""

        def after_train_epoch(self, runner: Any) -> None:
            runner.model.get_parameter("0.bias").requires_grad_(False)

    save = CheckpointHook(save_best=False)
    train(tmp_path, *saved_with, Freeze(), save, StopAtHook(iter=4))
    resumed_with = [] if saved_with else [ActivationCheckpointHook("Linear")]
    resumed = train(tmp_path, *resumed_with, CheckpointHook(save_best=False), resume="auto")
    assert not resumed.model.get_parameter("0.bias").requires_grad


def test_patterns_choose_parameters_by_their_names_in_the_model(tmp_path: Path) -> None:
    hooks = [ActivationCheckpointHook("Linear"), FreezeHook("0.bias")]
    runner = train(tmp_path, *hooks)
    assert torch.equal(runner.model.get_parameter("0.bias"), network().get_parameter("0.bias"))


def test_modules_that_are_wrapped_already_are_wrapped_once(tmp_path: Path) -> None:
    model = network()
    model[0] = checkpoint_wrapper(model[0])
    first = {"type": "ActivationCheckpointHook", "modules": "2", "name": "first"}
    hooks = [first, ActivationCheckpointHook(["0", "Counting"])]
    runner = make_runner(tmp_path, *hooks, model=model, seed=1)
    runner.train()
    runner.max_epochs = 3
    runner.train()
    plain = train(tmp_path / "plain", max_epochs=3)
    assert equal(runner.model, plain.model)
    assert list(runner.model.state_dict()) == list(plain.model.state_dict())
    assert sum(isinstance(each, CheckpointWrapper) for each in model.modules()) == 3


class Attention(nn.Module):
    """Adds its keys to a cache if it gets one, as layers of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = nn.Linear(6, 3)

    def forward(self, inputs: torch.Tensor, cache: list[torch.Tensor] | None) -> torch.Tensor:
        keys = self.keys(inputs)
        if cache is not None:
            cache.append(keys)
            keys = torch.cat(cache).mean(0, keepdim=True).expand(len(inputs), -1)
        return keys


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.config = SimpleNamespace(use_cache=True)
        self.attention = Attention()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.attention(inputs, [] if self.config.use_cache else None)


def test_a_model_trains_without_its_cache(tmp_path: Path) -> None:
    model, plain = Cached(), Cached()
    plain.config.use_cache = False
    make_runner(tmp_path / "a", ActivationCheckpointHook("Attention"), model=model).train()
    make_runner(tmp_path / "b", model=plain).train()
    assert equal(model, plain)
    assert model.config.use_cache is True


def test_an_unknown_module_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        train(tmp_path, ActivationCheckpointHook("Countin"))
    assert caught.value.suggestion.nearest == "Counting"
