"""ActivationCheckpointHook: activations are recomputed, with the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.hooks import ActivationCheckpointHook, CheckpointHook, StopAtHook
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


@pytest.mark.parametrize("modules", ["Counting", ["2", "Dropout"]])
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


def test_an_unknown_module_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        train(tmp_path, ActivationCheckpointHook("Countin"))
    assert caught.value.suggestion.nearest == "Counting"
